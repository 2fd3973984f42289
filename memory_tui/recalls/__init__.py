"""What agents asked of the memory: the log of it, their turns as transcripts tell them, and questions asked again."""
