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
    (
        53,
        "a dry run without an answer was never asked again, nor on a worker that came back",
    ),
    (
        114,
        "a job waited for the name that a running object of an earlier job holds",
    ),
    (188, "a pod of the first run, shown late, started the second"),
    (190, "a worker's finalizer that was not written once was never written"),
    (
        316,
        "a worker whose lease was held before its objects were listed took no jobs",
    ),
];
