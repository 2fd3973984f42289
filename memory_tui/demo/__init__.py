"""The sample workspace that ships in the package.

- demo: The sample workspace: ten months of one household's notes, ending today. -> materialize
"""
