"""Recalls that happened. There is the log of what agents asked, the lines people recalled, and reruns."""
