"""Messages between processes and machines: frames over pipes, or over TCP with TLS and a token.

``channel.spawn`` and ``channel.over`` give a :class:`~perflaw.wire.channel.Channel` to a process on this machine,
``tls.connect`` and ``tls.Listener`` to one on another machine.
"""
