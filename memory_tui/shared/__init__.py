"""A shared index: a team's workspaces in a PostgreSQL database that the team runs already."""
