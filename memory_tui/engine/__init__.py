"""The engine behind every front end. It opens a workspace, keeps its index fresh, and answers queries."""
