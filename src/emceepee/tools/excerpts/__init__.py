"""excerpts"""
