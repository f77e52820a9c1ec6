//! What goes wrong, and when.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::dice::Dice;
use super::network::Outage;
use super::sim::Sim;
use super::terms::Fault;
use super::world::{MS, SECOND, lock};

/// How long a node is deaf, or mute, when nothing else happens, in µs.
const LONG: u64 = 120 * SECOND;

impl Sim {
    /// Something goes wrong now, and something else later.
    pub(super) fn next_fault(self: &Arc<Self>) {
        if self.is_calm() || self.is_over() {
            return;
        }
        let kinds = self.terms().faults();
        let number = self.occasions.fetch_add(1, Relaxed) + 1;
        let dice = self.world.dice("fault", number);
        let mut next = dice.between(SECOND, 12 * SECOND);
        if !kinds.is_empty() {
            let fault = dice.pick(kinds);
            // One direction fails as easily as the other.
            let fault = if fault == Fault::Deaf && dice.chance(0.5) { Fault::Mute } else { fault };
            if self.happens(|| format!("f{number}"), || format!("{fault:?}")) {
                self.world.say(|| format!("FAULT {number}: {fault:?}"));
                self.fault();
                self.cause(fault, &dice);
                // Beside what takes so long to see nothing else happens.
                next += if matches!(fault, Fault::DeafLong | Fault::MuteLong) { LONG } else { 0 };
            }
        }
        let sim = Arc::clone(self);
        self.world.at(self.world.now() + next, move || sim.next_fault());
    }

    pub(super) fn cause(self: &Arc<Self>, fault: Fault, dice: &Dice) {
        let now = self.world.now();
        match fault {
            Fault::Out => {
                let outage =
                    dice.pick(&[Outage::Silent, Outage::Loading, Outage::Reset, Outage::Frozen, Outage::Frozen]);
                let until = now + dice.between(SECOND, 40 * SECOND);
                self.change_weather(|weather| (weather.out_until, weather.outage) = (until, outage));
                self.break_ears(None);
                self.note_fault_of_all();
            }
            Fault::Slow => {
                let until = now + dice.between(SECOND, 10 * SECOND);
                self.change_weather(|weather| weather.slow_until = until);
            }
            Fault::Full => {
                let until = now + dice.between(SECOND, 6 * SECOND);
                self.change_weather(|weather| weather.full_until = until);
            }
            Fault::Jump => self.jump(dice),
            Fault::Snap => {
                if let Ok(snapshot) = self.store.snapshot() {
                    let ghost = self.court().ghost.clone();
                    *lock(&self.snapshot) = Some((snapshot, ghost));
                }
            }
            Fault::Fall => self.fall_back(),
            Fault::Caller => {
                let new = self.start_caller();
                let mut callers = lock(&self.callers);
                let place = dice.below(callers.len() as u64) as usize;
                callers[place].0.kill();
                callers[place] = new;
            }
            Fault::Kill
            | Fault::KillAtSend
            | Fault::Stop
            | Fault::Pause
            | Fault::PauseAtSend
            | Fault::Deaf
            | Fault::DeafLong
            | Fault::Mute
            | Fault::MuteLong
            | Fault::Ears
            | Fault::Wall => {
                self.strike_node(fault, dice);
            }
        }
    }

    fn strike_node(self: &Arc<Self>, fault: Fault, dice: &Dice) {
        let (world, now, alive) = (&self.world, self.world.now(), self.alive());
        if alive.is_empty() {
            return;
        }
        let node = &alive[dice.below(alive.len() as u64) as usize];
        world.say(|| format!("  .. of {}", node.process.name));
        match fault {
            Fault::Kill => self.kill(&node.process),
            Fault::KillAtSend => node.dies_after.store(dice.below(8), Relaxed),
            Fault::Stop if alive.len() > 1 => {
                self.stop_node(node);
                let sim = Arc::clone(self);
                world.at(now + dice.between(SECOND, 8 * SECOND), move || sim.start_node());
            }
            Fault::Pause => {
                node.process.pause(now + dice.between(SECOND, 45 * SECOND));
                self.note_fault(&node.process);
            }
            Fault::PauseAtSend => {
                node.pause.store(dice.between(SECOND, 45 * SECOND), Relaxed);
                node.pauses_after.store(dice.below(8), Relaxed);
            }
            Fault::Deaf => {
                node.process.deafen(now + dice.pick(&[1, 3, 10, 40, 100]) * SECOND);
                self.note_fault(&node.process);
            }
            Fault::DeafLong => {
                node.process.deafen(now + LONG);
                self.note_fault(&node.process);
            }
            Fault::MuteLong => node.process.mute(now + LONG),
            Fault::Mute => node.process.mute(now + dice.pick(&[1, 3, 10, 40, 100]) * SECOND),
            Fault::Ears => self.break_ears(Some(&node.process)),
            Fault::Wall => {
                let by = dice.between(0, 120 * SECOND) as i64 - 60 * SECOND as i64;
                node.process.clock.skew.store(by, Relaxed);
            }
            _ => {}
        }
    }

    fn jump(&self, dice: &Dice) {
        let by = dice.pick(&[500 * MS, 10 * SECOND, 20 * SECOND, 600 * SECOND]) as i64;
        let by = if dice.chance(0.5) { by } else { -by };
        let most = 600 * SECOND as i64;
        let skew = (self.clock.skew.load(Relaxed) + by).clamp(-most, most);
        self.clock.skew.store(skew, Relaxed);
        self.court().jumped = true;
        self.world.say(|| format!("the store's clock is {skew} µs ahead"));
    }

    fn fall_back(&self) {
        let Some((snapshot, ghost)) = lock(&self.snapshot).take() else { return };
        if self.store.restore(&snapshot).is_err() {
            return;
        }
        let view = self.store.view(&self.key);
        let mut court = self.court();
        court.ghost = ghost;
        court.before = view;
        court.fell = true;
        court.unsettle(self.world.now());
        drop(court);
        self.world.say(|| "the store falls back".into());
    }

    fn note_fault_of_all(&self) {
        let now = self.world.now();
        self.for_courts(|court| court.unsettle(now));
    }
}
