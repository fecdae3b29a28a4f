//! The live table: redrawn on a terminal, a line for each change elsewhere.

use std::collections::BTreeMap;
use std::time::Instant;

use super::world::{JobLine, WorkerLine};

/// The live table.
pub struct Table {
    terminal: bool,
    drawn: usize,
    last: BTreeMap<String, String>,
    start: Instant,
}

impl Table {
    /// A table on a terminal, or plain lines.
    pub fn new(terminal: bool) -> Self {
        Self {
            terminal,
            drawn: 0,
            last: BTreeMap::new(),
            start: Instant::now(),
        }
    }

    /// Shows how things stand now.
    pub fn show(&mut self, jobs: &[JobLine], workers: &[WorkerLine]) {
        let mut lines: Vec<(String, String)> = workers
            .iter()
            .map(|w| (format!("worker {}", w.name), w.to_string()))
            .collect();
        lines.extend(jobs.iter().map(|j| (format!("job {}", j.name), j.to_string())));
        if self.terminal {
            self.redraw(&lines);
        } else {
            self.print_changes(&lines);
        }
    }

    /// Nothing more is shown.
    pub fn end(&mut self) {
        self.drawn = 0;
    }

    fn redraw(&mut self, lines: &[(String, String)]) {
        if self.drawn > 0 {
            print!("\x1b[{}A", self.drawn);
        }
        for (_, line) in lines {
            println!("\x1b[2K{line}");
        }
        // A job that is gone leaves a line too many.
        for _ in lines.len()..self.drawn {
            println!("\x1b[2K");
        }
        self.drawn = self.drawn.max(lines.len());
    }

    fn print_changes(&mut self, lines: &[(String, String)]) {
        for (what, line) in lines {
            if self.last.insert(what.clone(), line.clone()).as_ref() != Some(line) {
                println!("{:5.1} s  {line}", self.start.elapsed().as_secs_f64());
            }
        }
        let gone: Vec<_> = self
            .last
            .keys()
            .filter(|what| !lines.iter().any(|(w, _)| w == *what))
            .cloned()
            .collect();
        for what in gone {
            self.last.remove(&what);
            println!("{:5.1} s  {what} is gone", self.start.elapsed().as_secs_f64());
        }
    }
}
