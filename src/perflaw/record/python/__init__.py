"""How a Python program is recorded: its interpreter, what enters it (``target/``), and the readers of what that appends."""
