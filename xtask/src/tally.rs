//! Counting tests and reporting what came of them.

use std::time::Instant;

/// How many of the first and of the last lines of a failure are shown.
const SHOWN: usize = 100;

/// Results of all suites of one run.
#[derive(Default)]
pub struct Tally {
    passed: u32,
    /// The names of those that passed, where their runner names them.
    names: Vec<String>,
    skipped: u32,
    failures: Vec<String>,
    skips: Vec<String>,
    /// Tests that failed first and passed when they were tried again.
    later: Vec<String>,
}

impl Tally {
    /// A test did what it should.
    pub fn pass(&mut self, name: &str) {
        self.passed += 1;
        self.names.push(name.to_string());
    }

    /// Whether a test with such a name has passed.
    pub fn has_passed(&self, such: impl Fn(&str) -> bool) -> bool {
        self.names.iter().any(|name| such(name))
    }

    /// A test did not do what it should: `why` is shown at once and the name again at the end.
    pub fn fail(&mut self, name: &str, why: &str) {
        println!("FAILED {name}");
        let lines: Vec<&str> = why.lines().collect();
        let left_out = lines.len().saturating_sub(2 * SHOWN);
        for (at, line) in lines.iter().enumerate() {
            if left_out == 0 || at < SHOWN || at >= SHOWN + left_out {
                println!("    {line}");
            } else if at == SHOWN {
                println!("    ... {left_out} lines ...");
            }
        }
        self.failures.push(name.to_string());
    }

    /// A test was not run, for the reason given.
    pub fn skip(&mut self, name: &str, reason: &str) {
        self.skipped += 1;
        self.skips.push(format!("{name}: {reason}"));
    }

    /// A failed test was tried again and did what it should.
    pub fn passed_later(&mut self, name: &str) {
        if let Some(at) = self.failures.iter().position(|failure| failure == name) {
            self.failures.remove(at);
            self.passed += 1;
            self.later.push(name.to_string());
        }
    }

    /// The names of failed tests but the first `count`.
    pub fn failures_since(&self, count: u32) -> Vec<String> {
        self.failures.get(count as usize..).unwrap_or_default().to_vec()
    }

    /// `pass` or `fail` of something that returns a `Result`.
    pub fn check(&mut self, name: &str, result: Result<(), String>) {
        match result {
            Ok(()) => self.pass(name),
            Err(why) => self.fail(name, &why),
        }
    }

    /// Runs one suite under a heading and reports what it took.
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
        if !self.later.is_empty() {
            println!("passed only when tried again:");
            self.later.iter().for_each(|name| println!("  {name}"));
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

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn what_passes_later_is_no_failure_and_is_remembered() {
        let mut tally = Tally::default();
        tally.fail("a/b", "the host was late");
        tally.fail("c", "a fault");
        tally.passed_later("a/b");
        tally.passed_later("never failed");
        assert_eq!(tally.counts(), (1, 1, 0));
        assert_eq!((tally.failures_since(0), &tally.later), (vec!["c".to_string()], &vec!["a/b".to_string()]));
        assert!(!tally.finish());
    }
}
