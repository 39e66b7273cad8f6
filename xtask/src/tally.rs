//! Counting tests and saying what came of them.

use std::time::Instant;

/// Results of all suites of one run.
#[derive(Default)]
pub struct Tally {
    passed: u32,
    skipped: u32,
    failures: Vec<String>,
    skips: Vec<String>,
}

impl Tally {
    /// A test did what it should.
    pub fn pass(&mut self, _name: &str) {
        self.passed += 1;
    }

    /// Many tests of a foreign runner did what they should.
    pub fn pass_many(&mut self, count: u32) {
        self.passed += count;
    }

    /// A test did not do what it should: `why` is shown at once and the name again at the end.
    pub fn fail(&mut self, name: &str, why: &str) {
        println!("FAILED {name}");
        for line in why.lines() {
            println!("    {line}");
        }
        self.failures.push(name.to_string());
    }

    /// A test was not run, for the reason given.
    pub fn skip(&mut self, name: &str, reason: &str) {
        self.skipped += 1;
        self.skips.push(format!("{name}: {reason}"));
    }

    /// `pass` or `fail` of something that answers with a `Result`.
    pub fn check(&mut self, name: &str, result: Result<(), String>) {
        match result {
            Ok(()) => self.pass(name),
            Err(why) => self.fail(name, &why),
        }
    }

    /// Runs one suite under a heading and says what it took.
    pub fn suite(&mut self, name: &str, run: impl FnOnce(&mut Tally) -> Result<(), String>) {
        println!("== {name}");
        let (before, began) = (self.counts(), Instant::now());
        if let Err(why) = run(self) {
            self.fail(name, &why);
        }
        let after = self.counts();
        println!(
            "   {} passed, {} failed, {} skipped in {:.1} s",
            after.0 - before.0,
            after.1 - before.1,
            after.2 - before.2,
            began.elapsed().as_secs_f64()
        );
    }

    /// Passed, failed, skipped.
    pub fn counts(&self) -> (u32, u32, u32) {
        (self.passed, self.failures.len() as u32, self.skipped)
    }

    /// Prints skips with their reasons, failures, and the closing line; true when nothing failed and something ran.
    pub fn finish(&self) -> bool {
        println!();
        if !self.skips.is_empty() {
            println!("skipped:");
            self.skips.iter().for_each(|skip| println!("  {skip}"));
        }
        if !self.failures.is_empty() {
            println!("failed:");
            self.failures.iter().for_each(|failure| println!("  {failure}"));
        }
        let (passed, failed, skipped) = self.counts();
        println!("{passed} passed, {failed} failed, {skipped} skipped");
        failed == 0 && passed > 0
    }
}
