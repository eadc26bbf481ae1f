"""The command line: one small file a verb. Only this package prints or exits."""
