"""Prints what a program can see of where it runs; but for what is ours the same under a recorder as without."""

import gc
import os
import signal
import sys
import threading
import warnings

print(*sorted(sys.modules), sep="\n")
print("path", sys.path, sys.argv, sys.orig_argv, sys.flags)
print("importers", *sorted(sys.path_importer_cache), sep="\n")
print("finders", [getattr(one, "__name__", type(one)) for one in (*sys.meta_path, *sys.path_hooks)])
print("environment", sorted(os.environ.items()))
print("warnings", warnings.filters)
print("collector", gc.get_threshold(), gc.isenabled(), gc.callbacks)
print("signals", [(number, signal.getsignal(number)) for number in sorted(signal.valid_signals())])
print("threads", threading.enumerate(), threading.active_count())
print("files", sorted(os.listdir("/proc/self/fd")))
print("hooks", sys.getprofile(), sys.gettrace(), sys.excepthook, sys.unraisablehook, sys.displayhook)
print("limits", sys.getrecursionlimit(), sys.getswitchinterval())
print("folder", sorted(os.listdir()))
warnings.warn("a warning", stacklevel=1)
raise SystemExit(3)
