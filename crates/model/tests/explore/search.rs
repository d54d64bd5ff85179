//! Breadth-first search over a world of actions: the shortest way to a violation, and whether from everywhere a settled
//! state can still be reached.

use std::{
    collections::BTreeMap,
    fmt::{self, Display},
    hash::{Hash, Hasher},
};

/// What is explored.
pub(crate) trait Search {
    type Node: Clone;
    type Act: Copy;

    fn actions(&self, node: &Self::Node) -> Vec<Self::Act>;

    /// The node after the action, or the promise that it breaks.
    fn step(&self, node: &Self::Node, act: Self::Act) -> Result<Self::Node, String>;

    /// The action in words, before it is done.
    fn describe(&self, node: &Self::Node, act: Self::Act) -> String;

    /// Equal for nodes that behave the same.
    fn key(&self, node: &Self::Node) -> u128;

    /// Whether nothing has to happen any more.
    fn settled(&self, node: &Self::Node) -> bool;

    /// Names of the stories that have come true here.
    fn stories(&self, node: &Self::Node) -> Vec<&'static str>;
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) states: usize,
    pub(crate) transitions: usize,
    /// All states were seen; false where a violation or the limit ended the search.
    pub(crate) exhausted: bool,
    pub(crate) violation: Option<Trail>,
    /// The nearest state from which no settled one can be reached.
    pub(crate) stuck: Option<Trail>,
    /// Steps to the first state in which each story has come true.
    pub(crate) stories: BTreeMap<&'static str, usize>,
}

/// A way from the start.
#[derive(Debug)]
pub(crate) struct Trail {
    pub(crate) what: String,
    pub(crate) steps: Vec<String>,
}

impl Display for Trail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ({} steps)", self.what, self.steps.len())?;
        self.steps.iter().try_for_each(|step| writeln!(f, "  {step}"))
    }
}

/// Explores everything, up to so many states.
pub(crate) fn explore<S: Search>(search: &S, start: S::Node, limit: usize) -> Found {
    let mut found = Found::default();
    let mut seen = BTreeMap::from([(search.key(&start), 0_u32)]);
    let mut came_by: Vec<Option<(u32, S::Act)>> = vec![None];
    let mut settled = vec![search.settled(&start)];
    let mut arrows: Vec<(u32, u32)> = Vec::new();
    let mut frontier = vec![(0_u32, start.clone())];
    let mut depth = 0;
    while !frontier.is_empty() {
        let mut next = Vec::new();
        for (from, node) in frontier {
            for act in search.actions(&node) {
                found.transitions += 1;
                let to = match search.step(&node, act) {
                    Ok(to) => to,
                    Err(what) => {
                        let mut acts = acts_to(&came_by, from);
                        acts.push(act);
                        let steps = told(search, start, &acts);
                        found.states = came_by.len();
                        found.violation = Some(Trail { what, steps });
                        return found;
                    }
                };
                let fresh = u32::try_from(came_by.len()).unwrap();
                let id = *seen.entry(search.key(&to)).or_insert(fresh);
                arrows.push((id, from));
                if id == fresh {
                    came_by.push(Some((from, act)));
                    settled.push(search.settled(&to));
                    for story in search.stories(&to) {
                        found.stories.entry(story).or_insert(depth + 1);
                    }
                    next.push((id, to));
                }
            }
            if came_by.len() > limit {
                found.states = came_by.len();
                return found;
            }
        }
        frontier = next;
        depth += 1;
    }
    found.states = came_by.len();
    found.exhausted = true;
    let what = "no settled state can be reached any more".to_owned();
    found.stuck = stuck(settled, arrows).map(|at| Trail { what, steps: told(search, start, &acts_to(&came_by, at)) });
    found
}

fn acts_to<A: Copy>(came_by: &[Option<(u32, A)>], mut at: u32) -> Vec<A> {
    let mut acts = Vec::new();
    while let Some((from, act)) = came_by[at as usize] {
        acts.push(act);
        at = from;
    }
    acts.reverse();
    acts
}

/// Goes the way again, and says what is done.
fn told<S: Search>(search: &S, mut node: S::Node, acts: &[S::Act]) -> Vec<String> {
    let mut steps = Vec::new();
    for act in acts {
        steps.push(search.describe(&node, *act));
        let Ok(next) = search.step(&node, *act) else { break };
        node = next;
    }
    steps
}

/// Walks the arrows backwards from the settled states; what is not met is stuck.
fn stuck(mut reaches: Vec<bool>, mut back: Vec<(u32, u32)>) -> Option<u32> {
    back.sort_unstable();
    let mut open: Vec<u32> = (0_u32..).zip(&reaches).filter(|(_, settled)| **settled).map(|(id, _)| id).collect();
    while let Some(to) = open.pop() {
        let first = back.partition_point(|(t, _)| *t < to);
        for (_, from) in back[first..].iter().take_while(|(t, _)| *t == to) {
            if !std::mem::replace(&mut reaches[*from as usize], true) {
                open.push(*from);
            }
        }
    }
    reaches.iter().position(|r| !r).map(|at| u32::try_from(at).unwrap())
}

/// A hash of 128 bits, so that two of some hundred thousand nodes do not meet by chance.
pub(crate) fn fingerprint(of: &impl Hash) -> u128 {
    let mut lanes = Lanes(0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f);
    of.hash(&mut lanes);
    let mix = |mut x: u64| {
        x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        x ^ (x >> 32)
    };
    (u128::from(mix(lanes.0)) << 64) | u128::from(mix(lanes.1))
}

struct Lanes(u64, u64);

impl Lanes {
    fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        self.1 = (self.1.rotate_left(23) ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25);
    }
}

impl Hasher for Lanes {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word) ^ ((chunk.len() as u64) << 56));
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.word(u64::from(n));
    }

    fn write_u32(&mut self, n: u32) {
        self.word(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        self.word(n);
    }

    fn write_usize(&mut self, n: usize) {
        self.word(n as u64);
    }

    fn write_isize(&mut self, n: isize) {
        self.word(n.cast_unsigned() as u64);
    }
}
