"""Why is this function sometimes slow? The learner of variance (Kumar & Pande, Dominant Variance Characterization)."""
