"""Programs in PHP: Xdebug writes a function trace, which becomes a call tree with features and memory."""
