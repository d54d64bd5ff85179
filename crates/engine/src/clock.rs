//! What time it is, and waking up at a time. Counts the time that the computer sleeps, so that a deadline is not late
//! by a night. Never decides what a time means.

use std::{
    future::pending,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use turnkeep_model::Now;

/// This moment.
#[must_use]
pub fn now() -> Now {
    let wall = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    };
    Now { wall, boot: boot() }
}

/// Milliseconds since boot, sleep included.
#[must_use]
pub fn boot() -> u64 {
    #[cfg(unix)]
    {
        #[cfg(target_os = "linux")]
        const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
        let time = rustix::time::clock_gettime(CLOCK);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        seconds.saturating_mul(1000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000)
    }
    #[cfg(not(unix))]
    {
        static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
        u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Without a timer of the system that counts sleep, a look at the clock this often stands in for it.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Rings once at a time of [`boot`], if one is set. One file descriptor where the system has such timers.
#[derive(Debug)]
pub struct Alarm {
    at: Option<u64>,
    #[cfg(target_os = "linux")]
    timer: Option<tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>>,
}

impl Default for Alarm {
    fn default() -> Self {
        Self::new()
    }
}

impl Alarm {
    /// One that is not set. Must be made inside a tokio runtime.
    #[must_use]
    pub fn new() -> Self {
        Self {
            at: None,
            #[cfg(target_os = "linux")]
            timer: boot_timer(),
        }
    }

    /// Ring at this time, or never.
    pub fn set(&mut self, at: Option<u64>) {
        if self.at == at {
            return;
        }
        self.at = at;
        #[cfg(target_os = "linux")]
        if let Some(timer) = &self.timer
            && let Err(error) = arm(timer, at)
        {
            tracing::warn!(%error, "a timer could not be set; the clock is looked at every few seconds instead");
            self.timer = None;
        }
    }

    /// Wait until it rings; then it is not set any more. Nothing is lost when this future is dropped.
    pub async fn rung(&mut self) {
        let Some(at) = self.at else { return pending().await };
        while boot() < at {
            self.wait(Duration::from_millis(at.saturating_sub(boot()))).await;
        }
        self.set(None);
    }

    #[cfg(target_os = "linux")]
    async fn wait(&mut self, at_most: Duration) {
        let Some(timer) = &self.timer else { return tokio::time::sleep(at_most.min(LOOK_AGAIN)).await };
        match timer.readable().await {
            Ok(mut ready) => {
                let mut count = [0_u8; 8];
                if rustix::io::read(timer.get_ref(), &mut count).is_err() {
                    ready.clear_ready();
                }
            }
            Err(_) => tokio::time::sleep(at_most.min(LOOK_AGAIN)).await,
        }
    }

    #[cfg(not(target_os = "linux"))]
    async fn wait(&mut self, at_most: Duration) {
        tokio::time::sleep(at_most.min(LOOK_AGAIN)).await;
    }
}

#[cfg(target_os = "linux")]
fn boot_timer() -> Option<tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>> {
    use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
    let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC);
    match timer.map_err(std::io::Error::from).and_then(crate::descriptor::wait_for) {
        Ok(timer) => Some(timer),
        Err(error) => {
            tracing::warn!(%error, "no timer that counts sleep; the clock is looked at every few seconds instead");
            None
        }
    }
}

#[cfg(target_os = "linux")]
fn arm(timer: &tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>, at: Option<u64>) -> rustix::io::Result<()> {
    use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
    // An absolute time of nought would switch it off.
    let value = match at.map(|at| at.max(1)) {
        Some(at) => Timespec {
            tv_sec: i64::try_from(at / 1000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(at % 1000).unwrap_or(0) * 1_000_000,
        },
        None => Timespec { tv_sec: 0, tv_nsec: 0 },
    };
    let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
    timerfd_settime(timer.get_ref(), TimerfdTimerFlags::ABSTIME, &once).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_alarm_rings_once_and_not_early() {
        let mut alarm = Alarm::new();
        let at = boot() + 30;
        alarm.set(Some(at));
        alarm.rung().await;
        assert!(boot() >= at);
        let again = tokio::time::timeout(Duration::from_millis(50), alarm.rung()).await;
        assert!(again.is_err(), "an alarm that is not set must not ring");
    }

    #[tokio::test]
    async fn an_alarm_set_to_the_past_rings_at_once_and_a_later_time_replaces_it() {
        let mut alarm = Alarm::new();
        alarm.set(Some(boot() + 3_600_000));
        alarm.set(Some(1));
        tokio::time::timeout(Duration::from_secs(5), alarm.rung()).await.expect("the past has come");
        alarm.set(Some(1));
        alarm.set(Some(boot() + 3_600_000));
        let early = tokio::time::timeout(Duration::from_millis(50), alarm.rung()).await;
        assert!(early.is_err(), "the later time holds");
    }
}
