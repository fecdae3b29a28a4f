//! One scheduling cycle: queues, order, filter, fit, score, explain. (world, now) → assignments and reasons.
