"""Tabs of the page's panel, one a file."""
