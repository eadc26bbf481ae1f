"""Arrays in, laws out. Learners open no files and never print."""
