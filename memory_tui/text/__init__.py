"""Characters: safe display, JavaScript string rules, words."""
