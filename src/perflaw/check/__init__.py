"""Laws held against new evidence: check, diff, predict (Freud §6). Arrays and nouns in, verdicts out; opens no files."""
