//! multikueue: dispatches GPU jobs over many clusters by live free capacity.
