"""From events to the call tree: exact moments, samples, spans and durations by call path."""
