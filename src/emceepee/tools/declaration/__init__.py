"""declaration"""
