extern crate std;

use std::vec;
use std::vec::Vec;

use super::*;

const MS: Nanos = 1_000_000;
const SLICE: Nanos = 10 * MS;

/// Numbers that look random, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self, range: core::ops::Range<u64>) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        range.start + (self.0 >> 33) % (range.end - range.start)
    }
}

/// What a task does: it works for so long, then sleeps, again and again. `None`: it never sleeps.
type Habit = std::boxed::Box<dyn FnMut(&mut Random) -> Option<(Nanos, Nanos)>>;

struct Task {
    account: Account,
    habit: Habit,
    /// Of its job: what is left to do, and until when it was to be done.
    left: Option<Nanos>,
    /// Asleep until then.
    wakes: Option<Nanos>,
    sleep: Nanos,
    woke: Nanos,
    got: Nanos,
    /// The longest time from a wake-up to the end of that job.
    slowest: Nanos,
}

/// A core of its own, in simulated time.
struct Core {
    queue: Queue<usize>,
    tasks: Vec<Task>,
    running: Option<usize>,
    now: Nanos,
    idle: Nanos,
    decisions: u64,
    random: Random,
}

impl Core {
    fn new(slice: Nanos, seed: u64) -> Core {
        let (queue, random) = (Queue::new(slice), Random(seed));
        Core { queue, tasks: Vec::new(), running: None, now: 0, idle: 0, decisions: 0, random }
    }

    fn add(
        &mut self,
        account: Account,
        at: Nanos,
        habit: impl FnMut(&mut Random) -> Option<(Nanos, Nanos)> + 'static,
    ) -> usize {
        let habit = std::boxed::Box::new(habit);
        self.tasks.push(Task { account, habit, left: None, wakes: Some(at), sleep: 0, woke: 0, got: 0, slowest: 0 });
        self.tasks.len() - 1
    }

    fn hog(&mut self, nice: i32, at: Nanos) -> usize {
        self.add(Account::Fair(Fair::new(weight(nice))), at, |_| None)
    }

    fn promise(&mut self, demand: Demand) -> usize {
        self.queue.admit(Kind::Hard, demand, self.now).unwrap()
    }

    /// To the next event, at most until `end`.
    fn step(&mut self, end: Nanos) {
        let wakes = self.tasks.iter().filter_map(|task| task.wakes).min();
        let done = self.running.and_then(|running| self.tasks[running].left).map(|left| self.now + left);
        let due = self.queue.until(self.now).map(|after| self.now + after);
        let next = [wakes, done, due].into_iter().flatten().min().unwrap_or(end).clamp(self.now, end);
        let passed = next - self.now;
        self.now = next;
        match self.running {
            Some(running) => {
                self.tasks[running].got += passed;
                self.tasks[running].left = self.tasks[running].left.map(|left| left - passed);
            }
            None => self.idle += passed,
        }
        self.sleep();
        self.wake();
        self.decide();
    }

    fn sleep(&mut self) {
        let Some(running) = self.running.filter(|running| self.tasks[*running].left == Some(0)) else { return };
        let account = self.queue.stop(self.now).unwrap();
        let task = &mut self.tasks[running];
        task.account = account;
        task.slowest = task.slowest.max(self.now - task.woke);
        task.wakes = Some(self.now + task.sleep);
        self.running = None;
    }

    fn wake(&mut self) {
        for number in 0..self.tasks.len() {
            let task = &mut self.tasks[number];
            if task.wakes.is_some_and(|at| at <= self.now) {
                let job = (task.habit)(&mut self.random);
                (task.left, task.sleep) = (job.map(|job| job.0), job.map_or(0, |job| job.1));
                (task.wakes, task.woke) = (None, self.now);
                self.queue.enter(number, task.account, self.now, false);
            }
        }
    }

    fn decide(&mut self) {
        self.decisions += 1;
        if let Some((next, old)) = self.queue.preempt(self.now, |_| true) {
            if let (Some(running), Some(account)) = (self.running, old) {
                self.tasks[running].account = account;
                self.queue.enter(running, account, self.now, true);
            }
            self.running = Some(next);
        }
        assert!(self.running.is_some() || self.queue.is_empty(), "idle while somebody is ready");
    }

    fn run(&mut self, span: Nanos) {
        let end = self.now + span;
        while self.now < end {
            self.step(end);
        }
    }

    /// What each got in a span.
    fn shares(&mut self, span: Nanos) -> Vec<Nanos> {
        let before: Vec<Nanos> = self.tasks.iter().map(|task| task.got).collect();
        self.run(span);
        self.tasks.iter().zip(before).map(|(task, before)| task.got - before).collect()
    }
}

/// So much in so much, in milliseconds.
fn demand(budget: Nanos, period: Nanos) -> Demand {
    Demand { budget: budget * MS, deadline: period * MS, period: period * MS }
}

#[test]
fn equal_tasks_have_a_slice_each_and_the_deadline_n_slices_on() {
    let mut core = Core::new(SLICE, 1);
    let hogs: Vec<usize> = (0..5).map(|_| core.hog(0, 0)).collect();
    core.run(1);
    for span in [1, 4, 7] {
        let shares = core.shares(span * 5 * SLICE);
        for hog in &hogs {
            assert!(shares[*hog].abs_diff(span * SLICE) <= SLICE, "{shares:?}");
        }
    }
    // A task that is released gets its slice before n slices are over: never two in a row, nobody left out.
    let mut last = core.running;
    for _ in 0..50 {
        core.run(SLICE);
        assert_ne!(core.running, last);
        last = core.running;
    }
}

#[test]
fn shares_are_by_weight_within_a_slice() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut core = Core::new(SLICE, seed);
        let nices: Vec<i32> = (0..random.next(2..7)).map(|_| random.next(0..21) as i32 - 10).collect();
        for nice in &nices {
            core.hog(*nice, 0);
        }
        core.run(1);
        let span = random.next(50..5000) * MS;
        let shares = core.shares(span);
        let all: u64 = nices.iter().map(|nice| u64::from(weight(*nice))).sum();
        for (nice, got) in nices.iter().zip(&shares) {
            let due = span * u64::from(weight(*nice)) / all;
            assert!(got.abs_diff(due) <= 2 * SLICE, "seed {seed}, nice {nices:?}: {shares:?}, and {due} due");
        }
    }
}

#[test]
fn promises_are_kept_whatever_best_effort_does() {
    for seed in 0..300 {
        let mut random = Random(seed);
        let mut core = Core::new(random.next(1..90) * MS, seed);
        let mut promised = Vec::new();
        for _ in 0..random.next(1..6) {
            let period = random.next(2_000..200_000) * 1000;
            let deadline = random.next(period / 2..period + 1);
            let budget = random.next(1_000..deadline / 2);
            let demand = Demand { budget, deadline, period };
            if let Ok(promise) = core.queue.admit(Kind::Hard, demand, 0) {
                let start = random.next(0..50 * MS);
                let exact = random.next(0..2) == 0;
                let task = core.add(Account::Promise(promise), start, move |random| {
                    let work = if exact { budget } else { random.next(1..budget + 1) };
                    // It sleeps past the period's end, wherever its job ended in it.
                    Some((work, period + if exact { 0 } else { random.next(0..period) }))
                });
                promised.push((task, deadline));
            }
        }
        for _ in 0..random.next(0..6) {
            let nice = random.next(0..40) as i32 - 20;
            if random.next(0..2) == 0 {
                core.hog(nice, random.next(0..100 * MS));
            } else {
                let account = Account::Fair(Fair::new(weight(nice)));
                core.add(account, 0, |random| Some((random.next(1..30 * MS), random.next(1..30 * MS))));
            }
        }
        core.run(3000 * MS);
        for (task, deadline) in promised {
            let slowest = core.tasks[task].slowest;
            assert!(slowest <= deadline + 1, "seed {seed}: task {task} took {slowest} until its deadline {deadline}");
            assert!(core.tasks[task].got > 0);
        }
    }
}

#[test]
fn best_effort_does_not_starve() {
    for seed in 0..50 {
        let mut random = Random(seed);
        let mut core = Core::new(SLICE, seed);
        // Real-time tasks that ask for all there is to be had, and work on for ever.
        let mut room = SPECTRUM - BEST_EFFORT;
        while room > 50_000 {
            let period = random.next(10..100) * MS;
            let part = random.next(20_000..room + 1).min(room);
            let demand = Demand { budget: period / 1000 * part / 1000, deadline: period, period };
            let promise = core.promise(demand);
            core.add(Account::Promise(promise), 0, |_| None);
            room -= part;
        }
        let hogs: Vec<usize> = (0..3).map(|_| core.hog(0, 0)).collect();
        core.run(1);
        // A slice in ten, in turns: each of three has its slice within thirty, and what the rates leave in the end.
        let span = 60 * SLICE;
        for _ in 0..20 {
            let shares = core.shares(span);
            for hog in &hogs {
                assert!(shares[*hog] >= SLICE, "seed {seed}: {shares:?}");
            }
            assert!(hogs.iter().map(|hog| shares[*hog]).sum::<u64>() + 2 * SLICE >= span / 10, "seed {seed}: {shares:?}");
        }
    }
}

#[test]
fn who_has_used_up_his_budget_waits_and_has_what_nobody_wants() {
    let mut core = Core::new(SLICE, 1);
    let promise = core.promise(demand(20, 100));
    let greedy = core.add(Account::Promise(promise), 0, |_| None);
    core.run(500 * MS);
    assert_eq!((core.tasks[greedy].got, core.idle), (500 * MS, 0), "alone it has all");
    let hog = core.hog(0, core.now);
    core.run(100 * MS);
    let shares = core.shares(1000 * MS);
    assert!(shares[greedy].abs_diff(200 * MS) <= 20 * MS, "{shares:?}");
    assert!(shares[hog].abs_diff(800 * MS) <= 20 * MS, "{shares:?}");
}

#[test]
fn idle_time_saves_nothing_up() {
    let mut core = Core::new(SLICE, 1);
    let hog = core.hog(0, 0);
    let sleeper = core.hog(0, 5000 * MS);
    core.run(5000 * MS + 1);
    let shares = core.shares(1000 * MS);
    assert!(shares[sleeper].abs_diff(shares[hog]) <= 2 * SLICE, "{shares:?}");
    // Nor is what was had alone to be paid back.
    assert!(shares[hog] >= 490 * MS, "{shares:?}");
    // An idle core saves nothing up for those who come: they share from then on.
    let mut core = Core::new(SLICE, 1);
    let first = core.add(Account::Fair(Fair::new(NORMAL)), 0, |_| Some((100 * MS, 2000 * MS)));
    core.run(1000 * MS);
    assert_eq!((core.tasks[first].got, core.idle), (100 * MS, 900 * MS));
    core.hog(0, core.now);
    core.hog(0, core.now);
    core.run(1);
    let shares = core.shares(100 * SLICE);
    assert!(shares[1].abs_diff(shares[2]) <= SLICE, "{shares:?}");
}

#[test]
fn naps_are_no_way_to_have_more() {
    let mut core = Core::new(SLICE, 1);
    let honest = core.hog(0, 0);
    // Sleeps for a moment just before its slice is over.
    let sly = core.add(Account::Fair(Fair::new(NORMAL)), 0, |_| Some((SLICE - 1000, 1000)));
    core.run(1);
    let shares = core.shares(2000 * MS);
    assert!(shares[sly] <= shares[honest] + 2 * SLICE, "{shares:?}");
}

#[test]
fn who_slept_comes_at_once() {
    let mut core = Core::new(SLICE, 1);
    core.hog(0, 0);
    core.hog(0, 0);
    let light = core.add(Account::Fair(Fair::new(NORMAL)), 500 * MS, |_| Some((100_000, 50 * MS)));
    core.run(2000 * MS);
    assert!(core.tasks[light].slowest <= SLICE, "{}", core.tasks[light].slowest);
}

#[test]
fn no_more_is_admitted_than_there_is() {
    let mut queue: Queue<usize> = Queue::new(SLICE);
    assert_eq!(queue.admit(Kind::Hard, demand(50, 100), 0), Ok(0));
    assert_eq!(queue.admit(Kind::Hard, demand(41, 100), 0), Err(Refused::Full));
    assert_eq!(queue.admit(Kind::Hard, demand(40, 100), 0), Ok(1));
    assert_eq!(queue.admit(Kind::Hard, Demand { budget: 1000, ..demand(1, 100) }, 0), Err(Refused::Full));
    assert_eq!(queue.admit(Kind::Soft, demand(10, 100), 0), Err(Refused::Full), "nothing is left for it");
    // What one leaves is free when its release is over, not before.
    queue.enter(7, Account::Promise(1), 0, false);
    assert_eq!(queue.take(0, |_| true), Some(7));
    assert_eq!(queue.stop(10 * MS), Some(Account::Promise(1)));
    queue.dismiss(1, 10 * MS);
    assert_eq!(queue.admit(Kind::Hard, demand(40, 100), 99 * MS), Err(Refused::Full));
    assert_eq!(queue.admit(Kind::Hard, demand(40, 100), 100 * MS), Ok(1));
    let wrong = [(0, 1, 1), (2, 1, 2), (1, 2, 1), (999, 100_000, 100_000), (MS, MS, 1 << 40)];
    for (budget, deadline, period) in wrong {
        assert_eq!(queue.admit(Kind::Soft, Demand { budget, deadline, period }, 0), Err(Refused::Invalid));
    }
    // Their number is bounded, those included that have just gone.
    let mut queue: Queue<usize> = Queue::new(SLICE);
    let small = Demand { budget: 1000, deadline: 1000 * MS, period: 1000 * MS };
    for number in 0..MOST {
        assert_eq!(queue.admit(Kind::Hard, small, 0), Ok(number));
        queue.enter(0, Account::Promise(number), 0, false);
        queue.take(0, |_| true);
        queue.stop(1);
        queue.dismiss(number, 1);
    }
    assert_eq!(queue.admit(Kind::Hard, small, 2), Err(Refused::Full));
    assert_eq!(queue.admit(Kind::Hard, small, 1000 * MS), Ok(0));
}

#[test]
fn soft_tasks_have_what_there_is() {
    let mut core = Core::new(SLICE, 1);
    let hard = core.promise(demand(60, 100));
    let soft = core.queue.admit(Kind::Soft, demand(60, 100), 0).unwrap();
    let (first, second) = (core.add(Account::Promise(hard), 0, |_| None), core.add(Account::Promise(soft), 0, |_| None));
    let hog = core.hog(0, 0);
    core.run(100 * MS);
    let shares = core.shares(1000 * MS);
    for (task, due) in [(first, 600), (second, 300), (hog, 100)] {
        assert!(shares[task].abs_diff(due * MS) <= 20 * MS, "{shares:?}");
    }
}

#[test]
fn a_decision_costs_the_same_with_many() {
    // Steps are not counted here: only that no decision lets more than so many releases begin, and nobody is forgotten for it.
    let mut core = Core::new(MS, 1);
    for _ in 0..500 {
        core.hog(0, 0);
    }
    core.run(1);
    let shares = core.shares(1500 * MS);
    assert!(shares.iter().all(|got| got.abs_diff(3 * MS) <= MS), "{shares:?}");
    assert!(core.decisions <= 3000);
}

#[test]
fn who_is_woken_on_his_way_to_sleep_is_ready() {
    let mut queue: Queue<usize> = Queue::new(SLICE);
    queue.enter(1, Account::Fair(Fair::new(NORMAL)), 0, false);
    assert_eq!(queue.take(0, |_| true), Some(1));
    assert!(queue.is_empty());
    queue.wake_running(1);
    assert!(queue.stop(5 * MS).is_some());
    assert_eq!((queue.len(), queue.take(5 * MS, |_| true)), (1, Some(1)));
    assert_eq!(queue.until(5 * MS), None, "alone");
}

#[test]
fn who_does_not_fit_is_passed_over() {
    let mut queue: Queue<usize> = Queue::new(SLICE);
    for task in 0..4 {
        queue.enter(task, Account::Fair(Fair::new(NORMAL)), 0, false);
    }
    assert!(queue.has(|task| *task == 3) && !queue.has(|task| *task == 4));
    assert_eq!(queue.take(0, |task| *task >= 2), Some(2));
    assert_eq!(queue.steal(|task| *task == 3).map(|(task, _)| task), Some(3));
    assert_eq!(queue.give_way(MS, |_| true).map(|(task, _)| task), Some(0));
    assert_eq!(queue.len(), 1, "the one that gave way is its owner's to enter");
}

#[test]
fn an_account_keeps_its_distance_on_another_core() {
    let mut here: Queue<usize> = Queue::new(SLICE);
    here.enter(1, Account::Fair(Fair::new(NORMAL)), 0, false);
    here.take(0, |_| true);
    here.charge(500 * MS);
    assert_eq!(here.clock(), 500 * MS);
    let Some(Account::Fair(fair)) = here.stop(500 * MS) else { panic!("it ran") };
    let mut there: Queue<usize> = Queue::new(SLICE);
    there.enter(2, Account::Fair(Fair::new(NORMAL)), 0, false);
    there.take(0, |_| true);
    there.charge(MS);
    there.enter(1, Account::Fair(fair.moved(here.clock(), there.clock())), MS, false);
    assert_eq!(there.clock(), MS, "level with the other");
    let _ = vec![there.until(MS)];
}

impl Core {
    /// A task is counted by another account from now on, whatever it does.
    fn convert(&mut self, number: usize, account: Account) {
        if self.running == Some(number) {
            self.queue.convert(account, self.now);
        } else if let Some(task) = self.queue.remove(|task| *task == number) {
            self.queue.enter(task, account, self.now, true);
        } else {
            self.tasks[number].account = account;
        }
    }
}

#[test]
fn a_task_becomes_real_time_and_best_effort_again() {
    for seed in 0..30 {
        let mut core = Core::new(SLICE, seed);
        let hogs: Vec<usize> = (0..4).map(|_| core.hog(0, 0)).collect();
        core.run(1 + Random(seed).next(0..100 * MS));
        let chosen = hogs[seed as usize % hogs.len()];
        let promise = core.promise(demand(60, 100));
        core.convert(chosen, Account::Promise(promise));
        core.run(200 * MS);
        let shares = core.shares(1000 * MS);
        assert!(shares[chosen].abs_diff(600 * MS) <= 60 * MS, "seed {seed}: {shares:?}");
        let clock = core.queue.clock();
        core.convert(chosen, Account::Fair(Fair::at(NORMAL, clock)));
        core.queue.dismiss(promise, core.now);
        core.run(100 * MS);
        let shares = core.shares(1000 * MS);
        assert!(shares.iter().all(|got| got.abs_diff(250 * MS) <= 2 * SLICE), "seed {seed}: {shares:?}");
    }
}

#[test]
fn promises_are_kept_while_another_changes() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let mut core = Core::new(random.next(1..30) * MS, seed);
        let mut kept = Vec::new();
        for _ in 0..3 {
            let period = random.next(5_000..100_000) * 1000;
            let demand = Demand { budget: period / 5, deadline: period, period };
            let promise = core.promise(demand);
            let work = demand.budget;
            kept.push((core.add(Account::Promise(promise), 0, move |_| Some((work, period))), period));
        }
        let changing = core.promise(demand(1, 100));
        core.add(Account::Promise(changing), 0, |_| None);
        core.hog(0, 0);
        let mut refused = 0;
        for _ in 0..100 {
            core.run(random.next(1..50) * MS);
            let period = random.next(2_000..100_000) * 1000;
            let demand = Demand { budget: period * random.next(1..40) / 100, deadline: period, period };
            // Three fifths are the others', a tenth is best effort's.
            let fits = rate_of(&demand) <= SPECTRUM * 3 / 10;
            let result = core.queue.change(changing, demand, core.now);
            assert_eq!(result, if fits { Ok(()) } else { Err(Refused::Full) }, "seed {seed}: {demand:?}");
            refused += usize::from(!fits);
        }
        assert!(refused > 0);
        for (task, deadline) in kept {
            let slowest = core.tasks[task].slowest;
            assert!(slowest <= deadline + 1, "seed {seed}: task {task} took {slowest} until its deadline {deadline}");
        }
    }
}

fn rate_of(demand: &Demand) -> u64 {
    (demand.budget * SPECTRUM).div_ceil(demand.deadline)
}

#[test]
fn a_change_holds_from_the_next_release_on() {
    let mut core = Core::new(SLICE, 1);
    let promise = core.promise(demand(20, 100));
    let task = core.add(Account::Promise(promise), 0, |_| None);
    core.hog(0, 0);
    core.run(300 * MS);
    assert_eq!(core.queue.change(promise, demand(91, 100), core.now), Err(Refused::Full));
    assert_eq!(core.queue.change(promise, demand(2, 1), core.now), Err(Refused::Invalid));
    assert_eq!(core.queue.change(promise, demand(50, 100), core.now), Ok(()));
    assert_eq!(core.queue.room(), 400_000);
    core.run(200 * MS);
    let shares = core.shares(1000 * MS);
    assert!(shares[task].abs_diff(500 * MS) <= 50 * MS, "{shares:?}");
    // The higher rate of the two is in use until a release of the lower one begins.
    assert_eq!(core.queue.change(promise, demand(10, 100), core.now), Ok(()));
    assert_eq!(core.queue.room(), 400_000);
    core.run(200 * MS);
    assert_eq!(core.queue.room(), 800_000);
    let shares = core.shares(1000 * MS);
    assert!(shares[task].abs_diff(100 * MS) <= 20 * MS, "{shares:?}");
}

#[test]
fn who_has_done_his_work_goes_on_in_the_next_period() {
    let mut queue: Queue<usize> = Queue::new(SLICE);
    let promise = queue.admit(Kind::Hard, demand(2, 10), 0).unwrap();
    queue.enter(1, Account::Fair(Fair::new(NORMAL)), 0, false);
    assert_eq!(queue.take(0, |_| true), Some(1));
    assert_eq!(queue.finish(MS), None, "nothing was promised to it");
    queue.enter(2, Account::Promise(promise), 5 * MS, false);
    assert!(queue.is_urgent() && !queue.runs_promise());
    assert_eq!(queue.until(5 * MS), Some(1), "it does not wait for the end of a slice");
    let (task, old) = queue.preempt(5 * MS, |_| true).unwrap();
    assert_eq!(task, 2);
    queue.enter(1, old.unwrap(), 5 * MS, true);
    assert!(!queue.is_urgent() && queue.runs_promise());
    assert_eq!(queue.finish(6 * MS), Some(15 * MS));
    let account = queue.stop(6 * MS).unwrap();
    assert_eq!(queue.take(6 * MS, |_| true), Some(1));
    // Woken too early it has no budget; then it has all of it.
    queue.enter(2, account, 10 * MS, false);
    assert!(!queue.is_urgent());
    assert_eq!(queue.until_promise(10 * MS), Some(5 * MS));
    assert_eq!(queue.preempt(15 * MS, |_| true).map(|(task, _)| task), Some(2));
}
