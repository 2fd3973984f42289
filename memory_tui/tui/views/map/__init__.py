"""View 5: the map of the memory.

- map_view: View 5 is the map of the memory. -> MapView
"""
