//! Seeds that once failed, and what they showed. (What happens in the world of a seed changes with the model; what it showed may need another seed then.)

pub const KEPT: &[(u64, &str)] = &[
    (1, "a claim that had run out made the core ask to be polled without end"),
    (
        28,
        "a raised run of a job on a dark worker replaced its result by Unknown",
    ),
    (
        37,
        "an answer for a job that was gone ended the wait of its successor of the same name",
    ),
    (82, "the same, with a read: two requests at once for one job"),
];
