"""Configuration files. They are found and read for each agent, with the line of every value."""
