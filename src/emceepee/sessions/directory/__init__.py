"""directory"""
