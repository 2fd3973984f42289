"""The views, one a file: what a number key opens."""
