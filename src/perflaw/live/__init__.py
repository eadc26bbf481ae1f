"""Reports served while their experiments are recorded, explored, mined and checked."""
