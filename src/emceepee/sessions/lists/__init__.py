"""Lists of tools, resources, and prompts from all servers of a session, and the search in them.

May import the modules of `sessions`. Read `entry_list.py` first; `entry_search.py` maintains the search index.
"""
