"""Messages between processes and machines: frames over pipes, or over TCP with TLS and a token.

``pipes.spawn`` and ``pipes.over`` give a :class:`~perflaw.wire.channel.Channel` to a process beside,
``tls.connect`` and ``listener.Listener`` to one on another machine.
"""
