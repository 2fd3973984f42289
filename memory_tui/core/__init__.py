"""Values that every layer uses. Text rules stand here, too; nothing here knows notes, an index or a screen."""
