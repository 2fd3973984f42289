"""View 6: the agent programs, with the difference that connects one.

- agents_view: View 6 is the agents: a row for each agent program, connected or not. -> AgentsView
- connection_view: The connection view shows the files that connecting an agent changes, before they are written. ->
  ConnectionView
"""
