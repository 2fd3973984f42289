"""The sample workspace that ships in the package."""
