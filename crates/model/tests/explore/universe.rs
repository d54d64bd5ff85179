//! The machine in its environment: which actions there are, and what each does.

use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
    rc::Rc,
};

use turnkeep_model::{
    ApprovalId, Change, Effect, Input, ItemId, MessageId, Now, ProviderTurn, RequestKey, RuntimeId, SessionId, State, Step,
    Supervisor, ThreadRef, TurnId, apply,
    port::{
        AgentCommand, AgentEvent, Answer, Ask, AskBody, Choice, Failure, FailureClass, GoalStatus, Identity, Item, ItemBody,
        Observation, ProbeAnswer, TransportRecord, TurnOutcome, Usage,
    },
    rules::{Rules, Sound},
    state::{AccountKind, ApprovalState, Asker, Restarts},
};

use crate::{
    promises,
    search::{Search, fingerprint},
    world::{Act, Hazard, Process, Running, Said, Seat, Who, World, short},
};

/// Rules to explore with; for wrong ones also what goes wrong around the machine.
pub(crate) trait Flaw: Rules + Clone + Default + Hash {
    /// What is made of an earlier run's state before the machine has it.
    fn reload(_state: &State) -> Vec<Change> {
        Vec::new()
    }

    /// Whether the machine is told.
    fn hears(_state: &State, _input: &Input) -> bool {
        true
    }
}

impl Flaw for Sound {}

/// What to explore: where it starts, and how often which hazard may happen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Configuration {
    pub(crate) state: State,
    pub(crate) home: Option<Who>,
    pub(crate) vault: Vec<(turnkeep_model::CredentialId, Who)>,
    pub(crate) hazards: Vec<(Hazard, u8)>,
    /// Who signs in, when somebody does.
    pub(crate) signs_in: Who,
    /// Starts of runtimes under one epoch that are not yet a storm.
    pub(crate) starts: u8,
}

/// The machine, and everything else.
#[derive(Clone, Debug)]
pub(crate) struct Node<R: Rules> {
    pub(crate) machine: Supervisor<R>,
    pub(crate) world: World,
    /// Boot milliseconds.
    clock: u64,
}

#[derive(Debug)]
pub(crate) struct Universe<R> {
    pub(crate) configuration: Configuration,
    pub(crate) rules: std::marker::PhantomData<R>,
}

impl<R: Flaw> Universe<R> {
    pub(crate) fn new(configuration: Configuration) -> Self {
        Self { configuration, rules: std::marker::PhantomData }
    }

    pub(crate) fn start(&self) -> Node<R> {
        let c = &self.configuration;
        let world = World {
            home: c.home,
            vault: c.vault.iter().copied().collect(),
            left: std::array::from_fn(|which| c.hazards.get(which).map_or(0, |(_, times)| *times)),
            ..World::default()
        };
        let machine = Supervisor::with_rules(c.state.clone(), R::default());
        let mut node = Node { machine, world, clock: 1_000 };
        // What was asked for on the way to the start is asked for again.
        self.tell(&mut node, Input::Tick).unwrap();
        node
    }

    /// Tells the machine something, takes in what follows, and checks every promise.
    fn tell(&self, node: &mut Node<R>, input: Input) -> Result<(), String> {
        if !R::hears(node.machine.state(), &input) {
            return Ok(());
        }
        promises::asked(node.machine.state(), &mut node.world, &input);
        let step = node.machine.handle(Now { wall: 0, boot: node.clock }, input);
        self.take_in(node, step)
    }

    fn take_in(&self, node: &mut Node<R>, step: Step) -> Result<(), String> {
        for change in &step.changes {
            promises::follow(node.machine.state(), Rc::make_mut(&mut node.world.ghost), change, self.configuration.starts)?;
        }
        for effect in step.effects {
            match effect {
                Effect::Notify { .. } | Effect::CloseNotification { .. } => {}
                Effect::Command { command: AgentCommand::ListModels | AgentCommand::ReadRateLimits, .. } => {}
                Effect::Command { runtime, command }
                | Effect::Open { runtime, command }
                | Effect::ReadHistory { runtime, command }
                | Effect::Probe { runtime, command, .. } => write(&mut node.world, runtime, command)?,
                Effect::Release { runtime, session } => {
                    write(&mut node.world, runtime, AgentCommand::ReleaseSession { session })?;
                }
                Effect::Spawn { .. }
                | Effect::Stop { .. }
                | Effect::Reap { .. }
                | Effect::SignIn { .. }
                | Effect::CancelSignIn { .. }
                | Effect::Revoke { .. }
                | Effect::Exit => {
                    node.world.effects.insert(effect);
                }
            }
        }
        promises::keep(node.machine.state(), &node.world)
    }

    fn restart(&self, node: &mut Node<R>) -> Result<(), String> {
        node.world.exited = false;
        node.world.effects.clear();
        node.world.inputs.clear();
        node.world.news = false;
        node.world.processes.retain(|_, p| p.alive);
        for process in node.world.processes.values_mut() {
            process.orphan = true;
            process.stdout.clear();
        }
        let mut state = node.machine.state().clone();
        for change in R::reload(&state) {
            apply(&mut state, &change);
            promises::follow(&state, Rc::make_mut(&mut node.world.ghost), &change, self.configuration.starts)?;
        }
        node.machine = Supervisor::with_rules(state, R::default());
        let step = node.machine.recover(Now { wall: 0, boot: node.clock });
        self.take_in(node, step)
    }

    fn perform(&self, node: &mut Node<R>, effect: Effect) -> Result<(), String> {
        let world = &mut node.world;
        world.effects.remove(&effect);
        match effect {
            Effect::Spawn { runtime, credential, kind, .. } => {
                let who = if kind == AccountKind::System { world.home } else { world.vault.get(&credential).copied() };
                let mut process = Process::started(credential, who);
                process.say(AgentEvent::Ready { version: String::new(), identity: seen(who) });
                world.processes.insert(runtime, process);
            }
            Effect::Stop { runtime, .. } | Effect::Reap { runtime, .. } => {
                let spawn =
                    world.effects.iter().find(|e| matches!(e, Effect::Spawn { runtime: r, .. } if *r == runtime)).cloned();
                if let Some(spawn) = spawn {
                    world.effects.remove(&spawn);
                }
                let gone = world.processes.entry(runtime).or_insert_with(|| Process::started(Default::default(), None));
                promises::stopping(node.machine.state(), runtime)?;
                if gone.alive {
                    gone.alive = false;
                    gone.orphan = false;
                    cut_off(&mut world.history, gone);
                    gone.stdout.push(Said::Gone(false));
                }
            }
            Effect::Revoke { credential, kind, .. } => {
                promises::revoking(world, credential)?;
                if kind == AccountKind::System {
                    world.home = None;
                } else {
                    world.vault.remove(&credential);
                }
                world.inputs.insert(Input::Revoked { credential, result: Ok(()) });
            }
            Effect::SignIn { sign_in, credential, .. } => {
                world.vault.insert(credential, self.configuration.signs_in);
                world.inputs.insert(Input::SignInEnded { sign_in, result: Ok(seen(Some(self.configuration.signs_in))) });
            }
            Effect::CancelSignIn { sign_in } => {
                let begun =
                    world.effects.iter().find(|e| matches!(e, Effect::SignIn { sign_in: s, .. } if *s == sign_in)).cloned();
                if let Some(begun) = begun {
                    world.effects.remove(&begun);
                }
                if !world.inputs.iter().any(|i| matches!(i, Input::SignInEnded { sign_in: s, .. } if *s == sign_in)) {
                    world.inputs.insert(Input::SignInEnded { sign_in, result: Err(failure(FailureClass::Other)) });
                }
            }
            Effect::Exit => {
                promises::exiting(node.machine.state(), world)?;
                world.exited = true;
                world.effects.clear();
                world.inputs.clear();
                world.news = false;
            }
            Effect::Command { .. }
            | Effect::Open { .. }
            | Effect::ReadHistory { .. }
            | Effect::Release { .. }
            | Effect::Probe { .. }
            | Effect::Notify { .. }
            | Effect::CloseNotification { .. } => {}
        }
        Ok(())
    }

    /// What a process said last but nobody heard yet.
    fn read(&self, node: &mut Node<R>, runtime: RuntimeId) -> Result<(), String> {
        let Some(process) = node.world.processes.get_mut(&runtime) else { return Ok(()) };
        let input = match process.stdout.remove(0) {
            Said::Event(event) => Input::Agent { runtime, event },
            Said::Gone(by_itself) => {
                node.world.processes.remove(&runtime);
                Input::RuntimeGone { runtime, closed: by_itself.then(TransportRecord::default) }
            }
            Said::NeverStarted => {
                node.world.processes.remove(&runtime);
                Input::RuntimeStartFailed { runtime, failure: failure(FailureClass::StartFailed) }
            }
        };
        self.tell(node, input)
    }

    /// A process takes the next command.
    fn work(node: &mut Node<R>, runtime: RuntimeId, trouble: Option<&Hazard>) -> Result<(), String> {
        let world = &mut node.world;
        let Some(mut process) = world.processes.remove(&runtime) else { return Ok(()) };
        let command = process.stdin.remove(0);
        let (said, concerned) = (process.stdout.len(), concerned(&command));
        match command {
            AgentCommand::OpenSession { session, .. } if trouble == Some(&Hazard::Busy) => {
                process.say(AgentEvent::SessionOpenFailed { session, failure: failure(FailureClass::ThreadBusy) });
            }
            AgentCommand::OpenSession { session, goal, .. } => {
                if world.processes.values().any(|p| p.alive && p.seats.contains_key(&session)) {
                    return Err("two live processes own one thread".to_owned());
                }
                let goal = goal.is_some_and(|g| g.status == GoalStatus::Active);
                process.seats.insert(session, Seat { goal, turn: None });
                let thread = ThreadRef(format!("thread {session}"));
                process.say(AgentEvent::SessionOpened { session, thread, settings: Default::default() });
            }
            AgentCommand::ReleaseSession { session } => {
                process.seats.remove(&session);
                process.say(AgentEvent::SessionReleased { session });
            }
            AgentCommand::StartTurn { session, turn, .. } if trouble == Some(&Hazard::Reject) => {
                process.say(AgentEvent::TurnRejected { session, turn, failure: failure(FailureClass::Overloaded) });
            }
            AgentCommand::StartTurn { session, turn, message, .. } => {
                let ghost = Rc::make_mut(&mut world.ghost);
                promises::receiving(ghost, &process, turn, &message)?;
                world.history.insert(message.clone(), TurnOutcome::Lost);
                let begun = &mut ghost.begun;
                let Some(seat) = process.seats.get_mut(&session) else { return Err("a turn without a session".to_owned()) };
                let running = seat.turn.get_or_insert_with(|| begin(begun, Some(turn)));
                running.messages.push(message);
                let provider_turn = ProviderTurn(running.name.clone());
                process.say(AgentEvent::TurnStarted { session, turn: Some(turn), provider_turn });
            }
            AgentCommand::Steer { session, turn, message, .. } => {
                let running = process.seats.get_mut(&session).and_then(|s| s.turn.as_mut());
                match running.filter(|r| r.turn.is_none_or(|t| t == turn)) {
                    Some(running) => {
                        if !Rc::make_mut(&mut world.ghost).delivered.insert(message.clone()) {
                            return Err(format!("message {message} reached an agent twice"));
                        }
                        running.messages.push(message.clone());
                        world.history.insert(message.clone(), TurnOutcome::Lost);
                        process.say(AgentEvent::Steered { session, turn, message });
                    }
                    None => {
                        let failure = failure(FailureClass::Other);
                        process.say(AgentEvent::SteerRefused { session, turn, message, failure });
                    }
                }
            }
            AgentCommand::Interrupt { session, turn } => {
                let running = process.seats.get(&session).and_then(|s| s.turn.as_ref());
                if running.is_some_and(|r| r.turn.is_none_or(|t| t == turn)) {
                    finish(&mut world.history, &mut process, session, TurnOutcome::Interrupted);
                }
            }
            AgentCommand::Answer { session, request, .. } => {
                if !Rc::make_mut(&mut world.ghost).answered.insert((runtime, request.clone())) {
                    return Err("an approval was answered twice".to_owned());
                }
                if let Some(turn) = process.seats.get_mut(&session).and_then(|s| s.turn.as_mut()) {
                    turn.asks = turn.asks.take().filter(|asked| *asked != request);
                }
            }
            AgentCommand::SetGoal { session, goal } => {
                if let Some(seat) = process.seats.get_mut(&session) {
                    seat.goal = goal.is_some_and(|g| g.status == GoalStatus::Active);
                }
            }
            AgentCommand::Probe { session, turn, message, .. } => {
                let found = match world.history.get(&message) {
                    Some(outcome) => ProbeAnswer::Found(outcome.clone()),
                    None => ProbeAnswer::NotFound,
                };
                process.say(AgentEvent::Probed { session, turn, found });
            }
            AgentCommand::ReadHistory { session, .. } => {
                let item = Item { id: ItemId::new("old"), body: ItemBody::Compaction };
                let unread = trouble == Some(&Hazard::NoAnswer);
                let result =
                    if unread { Err(failure(FailureClass::Timeout)) } else { Ok(vec![(ProviderTurn::new("old"), item)]) };
                process.say(AgentEvent::History { session, result });
                world.processes.insert(runtime, process);
                return Ok(());
            }
            AgentCommand::ReadIdentity
            | AgentCommand::ListModels
            | AgentCommand::ReadRateLimits
            | AgentCommand::ListThreads { .. }
            | AgentCommand::SignIn { .. }
            | AgentCommand::CancelSignIn
            | AgentCommand::SignOut => {}
        }
        if trouble == Some(&Hazard::NoAnswer) {
            process.stdout.truncate(said);
            process.say(AgentEvent::Fault { session: concerned, failure: failure(FailureClass::Timeout) });
        }
        world.processes.insert(runtime, process);
        Ok(())
    }

    fn hazard(&self, node: &mut Node<R>, hazard: &Hazard, runtime: RuntimeId, session: SessionId) -> Result<(), String> {
        match hazard {
            Hazard::Person(input) => self.tell(node, input.clone()),
            Hazard::Kill => self.restart(node),
            Hazard::Answer => self.answer(node, ApprovalId(runtime.0)),
            Hazard::Switch(who) => {
                node.world.home = *who;
                node.world.news = true;
                Ok(())
            }
            Hazard::DeleteItem(credential) => {
                if node.world.vault.remove(credential).is_some() {
                    let credential = *credential;
                    node.world.inputs.insert(Input::Observed { credential, observation: Observation::NoOne });
                }
                Ok(())
            }
            Hazard::Busy | Hazard::Reject | Hazard::NoAnswer => Self::work(node, runtime, Some(hazard)),
            Hazard::Die | Hazard::Vanish => {
                let world = &mut node.world;
                let spawn =
                    world.effects.iter().find(|e| matches!(e, Effect::Spawn { runtime: r, .. } if *r == runtime)).cloned();
                let process = world.processes.entry(runtime).or_insert_with(|| Process::started(Default::default(), None));
                process.alive = false;
                if let Some(spawn) = spawn {
                    world.effects.remove(&spawn);
                    process.stdout.push(Said::NeverStarted);
                } else {
                    if *hazard == Hazard::Die {
                        last_words(process);
                    }
                    cut_off(&mut world.history, process);
                    process.stdout.push(Said::Gone(true));
                }
                if process.orphan {
                    world.processes.remove(&runtime);
                }
                Ok(())
            }
            Hazard::Ask | Hazard::Refuse | Hazard::GoalTurn => {
                let world = &mut node.world;
                let Some(process) = world.processes.get_mut(&runtime) else { return Ok(()) };
                let Some(seat) = process.seats.get_mut(&session) else { return Ok(()) };
                if *hazard == Hazard::Refuse {
                    let outcome = TurnOutcome::Failed(failure(FailureClass::SignedOut));
                    finish(&mut world.history, process, session, outcome);
                } else if *hazard == Hazard::Ask {
                    let ghost = Rc::make_mut(&mut world.ghost);
                    ghost.asked += 1;
                    let request = RequestKey(format!("ask {}", ghost.asked));
                    let Some(turn) = seat.turn.as_mut() else { return Ok(()) };
                    turn.asks = Some(request.clone());
                    let provider_turn = Some(ProviderTurn(turn.name.clone()));
                    process.say(AgentEvent::ApprovalRequested { session, provider_turn, request, ask: question() });
                } else {
                    let turn = begin(&mut Rc::make_mut(&mut world.ghost).begun, None);
                    let provider_turn = ProviderTurn(turn.name.clone());
                    seat.turn = Some(turn);
                    process.say(AgentEvent::TurnStarted { session, turn: None, provider_turn });
                }
                Ok(())
            }
        }
    }

    fn answer(&self, node: &mut Node<R>, approval: ApprovalId) -> Result<(), String> {
        self.tell(node, Input::AnswerApproval { approval, answer: Answer::Choice(Choice::Allow), by: Asker::Tray })
    }

    /// Calls `strike` with every place where the hazard can strike.
    fn places(node: &Node<R>, hazard: &Hazard, mut strike: impl FnMut(RuntimeId, SessionId)) {
        let (nowhere, none) = (RuntimeId(0), SessionId(0));
        let world = &node.world;
        let seats = world.processes.iter().filter(|(_, p)| p.alive);
        let seats = seats.flat_map(|(r, p)| p.seats.iter().map(|(s, seat)| (*r, *s, seat)));
        match hazard {
            Hazard::Person(Input::Send { message, .. } | Input::Steer { message, .. })
                if world.ghost.accepted.contains(message) => {}
            Hazard::Person(_) | Hazard::Kill | Hazard::Switch(_) | Hazard::DeleteItem(_) => strike(nowhere, none),
            Hazard::Answer => (0..node.machine.state().next.approval).for_each(|id| strike(RuntimeId(id), none)),
            Hazard::Die | Hazard::Vanish => {
                world.processes.iter().filter(|(_, p)| p.alive).for_each(|(id, _)| strike(*id, none));
                for effect in &world.effects {
                    if let Effect::Spawn { runtime, .. } = effect {
                        strike(*runtime, none);
                    }
                }
            }
            Hazard::Busy => {
                let opens = |p: &Process| p.alive && matches!(p.stdin.first(), Some(AgentCommand::OpenSession { .. }));
                world.processes.iter().filter(|(_, p)| opens(p)).for_each(|(r, _)| strike(*r, none));
            }
            Hazard::Reject => {
                let starts = |p: &Process| p.alive && matches!(p.stdin.first(), Some(AgentCommand::StartTurn { .. }));
                world.processes.iter().filter(|(_, p)| starts(p)).for_each(|(r, _)| strike(*r, none));
            }
            Hazard::NoAnswer => {
                let asked = |p: &Process| p.alive && p.stdin.first().is_some_and(|c| concerned(c).is_some());
                world.processes.iter().filter(|(_, p)| asked(p)).for_each(|(r, _)| strike(*r, none));
            }
            Hazard::Ask => {
                let quiet = |seat: &Seat| seat.turn.as_ref().is_some_and(|t| t.asks.is_none());
                seats.filter(|(.., seat)| quiet(seat)).for_each(|(r, s, _)| strike(r, s));
            }
            Hazard::Refuse => seats.filter(|(.., seat)| seat.turn.is_some()).for_each(|(r, s, _)| strike(r, s)),
            Hazard::GoalTurn => {
                seats.filter(|(.., seat)| seat.goal && seat.turn.is_none()).for_each(|(r, s, _)| strike(r, s));
            }
        }
    }
}

impl<R: Flaw> Search for Universe<R> {
    type Node = Node<R>;
    type Act = Act;

    fn actions(&self, node: &Node<R>) -> Vec<Act> {
        let world = &node.world;
        if world.exited {
            return if world.processes.values().any(|p| p.alive) { vec![Act::Restart] } else { Vec::new() };
        }
        let mut acts: Vec<_> = (0..world.effects.len()).map(Act::Perform).collect();
        acts.extend((0..world.inputs.len()).map(Act::Hear));
        acts.extend(world.news.then_some(Act::News));
        for (runtime, process) in &world.processes {
            acts.extend((!process.stdout.is_empty()).then_some(Act::Read(*runtime)));
            acts.extend((process.alive && !process.stdin.is_empty()).then_some(Act::Work(*runtime)));
            let done = process.seats.iter().filter(|(_, s)| s.turn.as_ref().is_some_and(|t| t.asks.is_none()));
            acts.extend(done.filter(|_| process.alive).map(|(session, _)| Act::Finish(*runtime, *session)));
        }
        let asked = node.machine.state().approvals.iter().filter(|(_, a)| a.state == ApprovalState::Pending);
        acts.extend(asked.map(|(id, _)| Act::Answer(*id)));
        acts.extend(node.machine.next_deadline().map(|_| Act::Time));
        for (which, (hazard, _)) in self.configuration.hazards.iter().enumerate().filter(|(which, _)| world.left[*which] > 0) {
            Self::places(node, hazard, |runtime, session| acts.push(Act::Hazard(which, runtime, session)));
            let unread = world.processes.values().any(|p| p.alive && !p.stdin.is_empty());
            acts.extend((unread && *hazard == Hazard::Kill).then_some(Act::KillEarly(which)));
        }
        acts
    }

    fn describe(&self, node: &Node<R>, act: Act) -> String {
        match act {
            Act::Perform(nth) => {
                let effect = node.world.effects.iter().nth(nth).unwrap();
                format!("performed: {}", effect.key().unwrap_or_else(|| short(effect)))
            }
            Act::Hear(nth) => format!("heard: {}", short(node.world.inputs.iter().nth(nth).unwrap())),
            Act::News => "the watcher's news arrives".to_owned(),
            Act::Read(runtime) => {
                let said = node.world.processes.get(&runtime).and_then(|p| p.stdout.first());
                format!(
                    "read from runtime {runtime}: {}",
                    match said {
                        Some(Said::Event(event)) => short(event),
                        Some(Said::Gone(_)) => "its end".to_owned(),
                        Some(Said::NeverStarted) => "it did not start".to_owned(),
                        None => String::new(),
                    }
                )
            }
            Act::Work(runtime) => {
                let command = node.world.processes.get(&runtime).and_then(|p| p.stdin.first());
                format!("runtime {runtime} takes: {}", command.map(short).unwrap_or_default())
            }
            Act::Finish(runtime, session) => format!("runtime {runtime} completes the turn of session {session}"),
            Act::Answer(approval) => format!("approval {approval} is answered"),
            Act::Time => "time passes".to_owned(),
            Act::Hazard(which, runtime, session) => match &self.configuration.hazards[which].0 {
                Hazard::Person(input) => format!("asked: {}", short(input)),
                Hazard::Kill => "killed, and started again".to_owned(),
                Hazard::Switch(who) => format!("{} is signed in, by another program", who.unwrap_or("nobody")),
                Hazard::DeleteItem(credential) => format!("the keychain item of credential {credential} is deleted"),
                Hazard::Die => format!("runtime {runtime} dies"),
                Hazard::Vanish => format!("runtime {runtime} dies without a word"),
                hazard @ (Hazard::Answer
                | Hazard::Busy
                | Hazard::Reject
                | Hazard::NoAnswer
                | Hazard::Ask
                | Hazard::Refuse
                | Hazard::GoalTurn) => {
                    format!("{hazard:?} at runtime {runtime}, session {session}")
                }
            },
            Act::KillEarly(_) => "killed before anything was written, and started again".to_owned(),
            Act::Restart => "started again".to_owned(),
        }
    }

    fn step(&self, node: &Node<R>, act: Act) -> Result<Node<R>, String> {
        let mut node = node.clone();
        match act {
            Act::Perform(nth) => {
                let effect = node.world.effects.iter().nth(nth).cloned().unwrap();
                self.perform(&mut node, effect)?;
            }
            Act::Hear(nth) => {
                let input = node.world.inputs.iter().nth(nth).cloned().unwrap();
                node.world.inputs.remove(&input);
                self.tell(&mut node, input)?;
            }
            Act::News => {
                node.world.news = false;
                let news = self.news(&node);
                self.tell(&mut node, news)?;
            }
            Act::Read(runtime) => self.read(&mut node, runtime)?,
            Act::Work(runtime) => Self::work(&mut node, runtime, None)?,
            Act::Finish(runtime, session) => {
                let world = &mut node.world;
                if let Some(process) = world.processes.get_mut(&runtime) {
                    let used = Usage { total_tokens: u64::from(world.ghost.begun), ..Usage::default() };
                    if node.machine.state().sessions.get(&session).is_some_and(|s| s.goal.is_some()) {
                        process.say(AgentEvent::Usage { session, usage: used });
                    }
                    finish(&mut world.history, process, session, TurnOutcome::Completed);
                }
            }
            Act::Answer(approval) => self.answer(&mut node, approval)?,
            Act::Time => {
                node.clock = node.machine.next_deadline().unwrap_or(node.clock);
                self.tell(&mut node, Input::Tick)?;
            }
            Act::Hazard(which, runtime, session) => {
                node.world.left[which] -= 1;
                self.hazard(&mut node, &self.configuration.hazards[which].0, runtime, session)?;
            }
            Act::KillEarly(which) => {
                node.world.left[which] -= 1;
                for process in node.world.processes.values_mut() {
                    process.stdin.clear();
                }
                self.restart(&mut node)?;
            }
            Act::Restart => self.restart(&mut node)?,
        }
        Ok(node)
    }

    fn key(&self, node: &Node<R>) -> u128 {
        let ahead = |at: u64| at.saturating_sub(node.clock);
        let silences: Vec<_> = node.machine.silences().into_iter().map(|(turn, at)| (turn, ahead(at))).collect();
        let idle: Vec<_> = node.machine.idle_ends().into_iter().map(|(runtime, at)| (runtime, ahead(at))).collect();
        fingerprint(&(Normal(node.machine.state(), node.clock), node.machine.rules(), &node.world, silences, idle))
    }

    fn settled(&self, node: &Node<R>) -> bool {
        promises::settled(node.machine.state(), &node.world)
    }

    fn stories(&self, node: &Node<R>) -> Vec<&'static str> {
        promises::stories(node.machine.state(), &node.world)
    }
}

impl<R: Flaw> Universe<R> {
    /// What the watcher of the person's own home says when it looks.
    fn news(&self, node: &Node<R>) -> Input {
        let state = node.machine.state();
        let system = state.accounts.values().find(|a| a.kind == AccountKind::System);
        let provider = state.providers.keys().next().cloned().unwrap();
        match (system.and_then(|a| a.credential), node.world.home) {
            (Some(credential), who) => Input::Observed { credential, observation: seen(who) },
            (None, who) => Input::SystemAccount { provider, present: who.is_some() },
        }
    }
}

impl Process {
    fn started(credential: turnkeep_model::CredentialId, who: Option<Who>) -> Self {
        Self { credential, who, alive: true, orphan: false, stdin: Vec::new(), stdout: Vec::new(), seats: Default::default() }
    }

    fn say(&mut self, event: AgentEvent) {
        if !self.orphan {
            self.stdout.push(Said::Event(event));
        }
    }
}

fn write(world: &mut World, runtime: RuntimeId, command: AgentCommand) -> Result<(), String> {
    let Some(process) = world.processes.get_mut(&runtime) else { return Ok(()) };
    if process.orphan {
        return Err("something is asked of a process that nobody can talk to".to_owned());
    }
    if process.alive {
        process.stdin.push(command);
    }
    Ok(())
}

/// The session whose command must be answered.
fn concerned(command: &AgentCommand) -> Option<SessionId> {
    if let AgentCommand::OpenSession { session, .. }
    | AgentCommand::ReleaseSession { session }
    | AgentCommand::StartTurn { session, .. } = command
    {
        Some(*session)
    } else {
        None
    }
}

fn begin(begun: &mut u8, turn: Option<TurnId>) -> Running {
    *begun += 1;
    Running { name: format!("turn {begun}"), turn, messages: Vec::new(), asks: None }
}

fn finish(history: &mut BTreeMap<MessageId, TurnOutcome>, process: &mut Process, session: SessionId, outcome: TurnOutcome) {
    let Some(turn) = process.seats.get_mut(&session).and_then(|s| s.turn.take()) else { return };
    for message in turn.messages {
        history.insert(message, outcome.clone());
    }
    process.say(AgentEvent::TurnEnded { session, provider_turn: ProviderTurn(turn.name), outcome });
}

/// What is told when a transport closes, of each turn and of each message that waits for its answer.
fn last_words(process: &mut Process) {
    let closed = || failure(FailureClass::TransportClosed(Box::default()));
    let running: Vec<_> = process.seats.iter().filter_map(|(s, seat)| Some((*s, seat.turn.as_ref()?.name.clone()))).collect();
    for (session, name) in running {
        let outcome = TurnOutcome::Failed(closed());
        process.say(AgentEvent::TurnEnded { session, provider_turn: ProviderTurn(name), outcome });
    }
    for command in std::mem::take(&mut process.stdin) {
        if let AgentCommand::StartTurn { session, .. } = command {
            process.say(AgentEvent::Fault { session: Some(session), failure: closed() });
        } else if let AgentCommand::OpenSession { session, .. } = command {
            process.say(AgentEvent::SessionOpenFailed { session, failure: closed() });
        } else if let AgentCommand::Steer { session, turn, message, .. } = command {
            process.say(AgentEvent::SteerRefused { session, turn, message, failure: closed() });
        }
    }
}

/// The process is dead: what it worked on was not ended.
fn cut_off(history: &mut BTreeMap<MessageId, TurnOutcome>, process: &mut Process) {
    for turn in process.seats.values_mut().filter_map(|s| s.turn.take()) {
        history.extend(turn.messages.into_iter().map(|m| (m, TurnOutcome::Lost)));
    }
    process.seats.clear();
    process.stdin.clear();
}

pub(crate) fn seen(who: Option<Who>) -> Observation {
    let name = |who: Who| Identity { fingerprint: who.to_owned(), label: String::new(), plan: None };
    who.map_or(Observation::NoOne, |who| Observation::Someone(name(who)))
}

fn failure(class: FailureClass) -> Failure {
    Failure { class, message: String::new(), detail: None }
}

fn question() -> Ask {
    let body = AskBody::Command { command: String::new(), cwd: String::new(), may_run_unsandboxed: false };
    Ask { body, reason: None, choices: vec![Choice::Allow, Choice::Deny], item: None }
}

/// The state without what no decision depends on (positions, notifications), and with times as distances.
struct Normal<'a>(&'a State, u64);

impl Hash for Normal<'_> {
    fn hash<H: Hasher>(&self, to: &mut H) {
        let Self(state, clock) = *self;
        let ahead = |at: u64| at.saturating_sub(clock);
        let restarts = |r: &Restarts, to: &mut H| {
            r.failures.iter().for_each(|at| (clock - at).hash(to));
            (r.failures.len(), &r.given_up, ahead(r.not_before)).hash(to);
        };
        (state.next, &state.providers, &state.runtimes, &state.turns, &state.approvals, &state.keychain).hash(to);
        for (id, a) in &state.accounts {
            (id, a.kind, a.credential, &a.identity, &a.problem, a.trial, a.verified_at.is_some()).hash(to);
            restarts(&a.restarts, to);
        }
        for (id, c) in &state.credentials {
            (id, c.account, c.owed_revocation, ahead(c.not_before)).hash(to);
        }
        for (id, s) in &state.sign_ins {
            (id, s.account, s.credential, s.failure.is_some(), s.cancelling, ahead(s.deadline)).hash(to);
        }
        for s in state.sessions.values() {
            (&s.thread, &s.attachment, &s.queue, &s.undecided, &s.goal, s.goal_held, s.turn).hash(to);
            (s.archived, s.usage.total_tokens, &s.open_failure, s.open_delay.tries, ahead(s.open_delay.not_before)).hash(to);
            restarts(&s.restarts, to);
        }
        if let Some(quit) = state.quit {
            // The time after the deadline counts too.
            (quit.forced, quit.deadline.map(|d| (d + 60_000).saturating_sub(clock))).hash(to);
        }
    }
}
