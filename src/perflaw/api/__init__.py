"""What programs and the command line ask of recordings: one function for each verb; nothing here prints."""
