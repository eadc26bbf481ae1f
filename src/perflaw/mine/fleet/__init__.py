"""Many processes on many hosts, mined together: a stub beside each process and one controller (FSE'16, §3, Figure 1)."""
