"""View 6: the agent programs, with the difference that connects one."""
