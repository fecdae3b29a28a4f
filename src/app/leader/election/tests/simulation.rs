//! Candidates at an API server that loses and delays, by a seed.

use std::collections::BTreeMap;

use proptest::test_runner::TestCaseError;

use super::*;

/// Times are milliseconds of a true clock that nobody sees.
pub struct Simulation {
    now: u64,
    random: u64,
    loss: u64,
    timing: Timing,
    faults: bool,
    stored: Option<LeaseRecord>,
    version: u64,
    candidates: Vec<Candidate>,
    /// What happens when; the second key keeps the order of equal times.
    agenda: BTreeMap<(u64, u64), Happening>,
    sequence: u64,
    pub acquisitions: usize,
}

struct Candidate {
    election: Election,
    /// Counts lives: what was meant for a former one is dropped.
    life: u64,
    /// Where this clock stands at true 0, and how fast it runs, in thousandths.
    offset: u64,
    rate: u64,
    /// The request that an answer is awaited for.
    waits_for: Option<u64>,
    led: bool,
}

enum Happening {
    /// A candidate takes its next step.
    Wake { candidate: usize, life: u64 },
    /// A request arrives at the API server.
    Arrive {
        candidate: usize,
        life: u64,
        number: u64,
        sent: u64,
        request: Request,
        heard: bool,
    },
    /// An answer, or the end of waiting for one, reaches a candidate.
    Answered {
        candidate: usize,
        life: u64,
        number: u64,
        sent: u64,
        answer: Answer,
    },
    /// Something goes wrong with a candidate.
    Fault,
}

impl Simulation {
    pub fn new(seed: u64, candidates: usize, loss: u64, timing: Timing) -> Self {
        let mut simulation = Self {
            now: 0,
            random: seed | 1,
            loss,
            timing,
            faults: true,
            stored: None,
            version: 0,
            candidates: Vec::new(),
            agenda: BTreeMap::new(),
            sequence: 0,
            acquisitions: 0,
        };
        for index in 0..candidates {
            let offset = simulation.below(1_000_000);
            // A tenth of the duration is kept for clocks that run at different rates: 1.05 / 0.95 is just within.
            let rate = 950 + simulation.below(101);
            let election = Election::new(format!("c{index}"), timing);
            simulation.candidates.push(Candidate {
                election,
                life: 0,
                offset,
                rate,
                waits_for: None,
                led: false,
            });
            simulation.at(
                0,
                Happening::Wake {
                    candidate: index,
                    life: 0,
                },
            );
        }
        simulation.at(500, Happening::Fault);
        simulation
    }

    /// No faults from now on.
    pub fn calm(&mut self) {
        self.faults = false;
    }

    /// Who leads.
    pub fn leader(&self) -> Option<usize> {
        (0..self.candidates.len()).find(|index| self.leads(*index))
    }

    /// Runs to this time and checks after everything that happens.
    pub fn run(&mut self, until: u64) -> Result<(), TestCaseError> {
        while let Some(entry) = self.agenda.first_entry() {
            let (time, _) = *entry.key();
            if time > until {
                break;
            }
            self.now = time;
            let happening = entry.remove();
            self.happen(happening);
            let leaders: Vec<usize> = (0..self.candidates.len()).filter(|index| self.leads(*index)).collect();
            prop_assert!(leaders.len() <= 1, "{leaders:?} lead at {} ms", self.now);
            for (index, candidate) in self.candidates.iter_mut().enumerate() {
                let leads = leaders.contains(&index);
                self.acquisitions += usize::from(leads && !candidate.led);
                candidate.led = leads;
            }
        }
        self.now = until;
        Ok(())
    }

    fn leads(&self, index: usize) -> bool {
        let candidate = &self.candidates[index];
        candidate.election.claim(candidate.local(self.now)).is_some()
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Wake { candidate, life } => self.wake(candidate, life),
            Happening::Arrive {
                candidate,
                life,
                number,
                sent,
                request,
                heard,
            } => {
                let answer = self.serve(request);
                if heard {
                    let back = self.delay();
                    self.at(
                        back,
                        Happening::Answered {
                            candidate,
                            life,
                            number,
                            sent,
                            answer,
                        },
                    );
                }
            }
            Happening::Answered {
                candidate,
                life,
                number,
                sent,
                answer,
            } => {
                let (now, c) = (self.now, &mut self.candidates[candidate]);
                if c.life == life && c.waits_for == Some(number) {
                    c.waits_for = None;
                    let (sent, now) = (c.local(sent), c.local(now));
                    c.election.answer(sent, now, answer);
                    self.wake(candidate, life);
                }
            }
            Happening::Fault => self.fault(),
        }
    }

    fn wake(&mut self, index: usize, life: u64) {
        let (now, wall) = (self.now, self.wall());
        let id = format!("{:x}", self.below(u64::MAX));
        let candidate = &mut self.candidates[index];
        if candidate.life != life || candidate.waits_for.is_some() {
            return;
        }
        let mono = candidate.local(now);
        match candidate.election.step(Now { mono, wall }, &id) {
            Step::Wait(until) => {
                let true_time = candidate.true_time(until).max(now + 1);
                // A stopped process sleeps longer than it wanted to.
                let late = if self.faults && self.below(20) == 0 {
                    self.below(15_000)
                } else {
                    0
                };
                self.at(true_time - now + late, Happening::Wake { candidate: index, life });
            }
            Step::Send(request) => {
                let number = self.sequence;
                self.candidates[index].waits_for = Some(number);
                let limit = u64::try_from(self.timing.duration.as_millis()).unwrap() / 3;
                let failed = Happening::Answered {
                    candidate: index,
                    life,
                    number,
                    sent: now,
                    answer: Answer::Failed,
                };
                self.at(limit, failed);
                let lost = self.faults && self.below(100) < self.loss / 2;
                if !lost {
                    let heard = !(self.faults && self.below(100) < self.loss / 2);
                    let there = self.delay();
                    let arrival = Happening::Arrive {
                        candidate: index,
                        life,
                        number,
                        sent: now,
                        request,
                        heard,
                    };
                    self.at(there, arrival);
                }
            }
        }
    }

    /// The API server: optimistic concurrency, and nothing else.
    fn serve(&mut self, request: Request) -> Answer {
        let Request::Write(write) = request else {
            return self.stored.clone().map_or(Answer::Absent, Answer::Found);
        };
        if write.replaces != self.stored.as_ref().map(|stored| stored.version.clone()) {
            return Answer::Conflict;
        }
        self.version += 1;
        let record = written(&write, &self.version.to_string());
        self.stored = Some(record.clone());
        Answer::Written(record)
    }

    /// Every so often a candidate crashes and comes back as another process, or gives the lease back first.
    fn fault(&mut self) {
        if !self.faults {
            return;
        }
        let index = usize::try_from(self.below(self.candidates.len() as u64)).unwrap();
        let wall = self.wall();
        if self.below(2) == 0
            && let Some(stored) = self.stored.clone()
            && let Some(write) = self.candidates[index].election.vacate(&stored, wall)
        {
            self.serve(Request::Write(write));
        }
        let (identity, timing) = (format!("c{index}-{}", self.sequence), self.timing);
        let candidate = &mut self.candidates[index];
        candidate.life += 1;
        candidate.waits_for = None;
        candidate.election = Election::new(identity, timing);
        let life = candidate.life;
        let away = self.below(5_000);
        self.at(away, Happening::Wake { candidate: index, life });
        let next = 1_000 + self.below(40_000);
        self.at(next, Happening::Fault);
    }

    /// Mostly a few milliseconds; under faults now and then longer than any deadline.
    fn delay(&mut self) -> u64 {
        match self.below(10) {
            0 if self.faults => self.below(30_000),
            1 if self.faults => self.below(3_000),
            _ => 1 + self.below(20),
        }
    }

    fn at(&mut self, after: u64, happening: Happening) {
        self.sequence += 1;
        self.agenda.insert((self.now + after, self.sequence), happening);
    }

    fn wall(&self) -> Timestamp {
        // Stands still for ten seconds at a time: nobody may rest on it.
        Timestamp::from_second(1_700_000_000 + i64::try_from(self.now / 10_000).unwrap()).unwrap()
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % limit
    }
}

impl Candidate {
    fn local(&self, true_time: u64) -> Duration {
        Duration::from_micros((self.offset + true_time) * 1000 * self.rate / 1000)
    }

    fn true_time(&self, local: Duration) -> u64 {
        let micros = u64::try_from(local.as_micros()).unwrap();
        micros.div_ceil(self.rate).saturating_sub(self.offset)
    }
}
