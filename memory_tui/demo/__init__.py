"""The sample workspace that ships in the package.

- demo: The sample workspace: ten months of one household's notes, ending today. -> materialize
- surroundings: Surroundings of the sample workspace are what other programs left beside it, so that the inbox holds
  every kind. -> surround
"""
