//! Which ways through the protocol a run has really taken, so that a campaign that never took one can say so.

/// Something that only happens when something else went wrong, or when several hosts meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// An initiator asked for Data-In or R2Ts again.
    DataSnack,
    /// An initiator asked for responses again.
    StatusSnack,
    /// An initiator acknowledged Data-In.
    DataAcknowledged,
    /// A Data-In was sent again.
    DataInAgain,
    /// An R2T was sent again.
    R2tAgain,
    /// An R2T asked for data that did not come.
    RecoveryR2t,
    /// A status was sent again.
    StatusAgain,
    /// A command was sent again with its CmdSN.
    CommandAgain,
    /// A broken connection was logged out for recovery over another.
    LogoutForRecovery,
    /// A connection took the place of a broken one, with its CID.
    ConnectionReinstated,
    /// A task was moved to another connection.
    TaskReassigned,
    /// An initiator aborted a task that it was not answered.
    TaskAborted,
    /// A client reinstated a session that was lost.
    SessionReinstated,
    /// A command ended with CHECK CONDITION.
    CheckCondition,
    /// A session took the place of another of its initiator.
    SessionReplaced,
    /// A client told that writes may be lost.
    WritesLost,
    /// A COMPARE AND WRITE found another value.
    Miscompare,
    /// A COMPARE AND WRITE found its value.
    CompareAndWritten,
    /// A block that was acknowledged, or under way, was lost with the cache.
    BlockLost,
    /// The disk could not empty its cache, and lost what it held.
    CacheLost,
    /// A command ended with RESERVATION CONFLICT.
    ReservationConflict,
    /// A persistent reservation was made.
    Reserved,
    /// Somebody's registration was preempted.
    Preempted,
    /// The same, with the tasks of its session.
    PreemptedAndAborted,
    /// Registrations survived a crash.
    RegistrationsKept,
    /// Registrations were lost at a crash.
    RegistrationsLost,
    /// A copy succeeded.
    Copied,
    /// The same, after it was told that writes were lost.
    CopiedAfterLoss,
    /// A copy failed.
    CopyFailed,
    /// A copy was refused, because another host's copy had reserved the destination.
    CopyRefused,
    /// A copy held its destination from its beginning until it was read back.
    CopiedBehindReservation,
    /// A copy noticed that its destination differs.
    CopyDiffers,
    /// A copy from one unit to another of the same target succeeded.
    CopiedBetweenUnits,
    /// A copy from one target to another succeeded.
    CopiedBetweenTargets,
    /// The StatSN of a connection wrapped.
    StatusNumbersWrapped,
    /// The CmdSN of a session wrapped.
    CommandNumbersWrapped,
    /// The task tags of a session wrapped.
    TaskTagsWrapped,
    /// Operations succeeded while one portal was away.
    CarriedOn,
    /// Somebody without the secret of a user was refused.
    WrongSecretRefused,
    /// Another user was refused who wanted to join a session.
    JoinRefused,
    /// Another user had a session under the name and ISID of a host.
    NameClaimed,
    /// Registrations were of no use to another user.
    RegistrationsDefended,
    /// A host found its target by asking for it.
    Discovered,
    /// A target asked for a logout.
    LogoutAsked,
    /// A target told that a connection is gone.
    ConnectionDropTold,
    /// A target told that it drops a session.
    SessionDropTold,
    /// A write that took several commands succeeded.
    WrittenInPieces,
    /// A block that was acknowledged was in the target's own cache, perhaps, when the target died.
    WriteBackLost,
    /// A nexus was told of a power on.
    ToldOfPowerOn,
    /// A nexus was told of a reset of the target.
    ToldOfTargetReset,
    /// A nexus was told of a reset of the unit.
    ToldOfLogicalUnitReset,
    /// A nexus was told that it had been lost.
    ToldOfNexusLoss,
    /// A nexus was told that another had cleared the task set.
    ToldOfClearedCommands,
    /// A nexus was told that another had cleared the reservations.
    ToldOfPreemptedReservations,
    /// A nexus was told that a reservation had ended.
    ToldOfReleasedReservations,
    /// A nexus was told that another had ended its registration.
    ToldOfPreemptedRegistrations,
    /// A READ had room for more than its CDB asked for.
    ReadUnderflow,
    /// A READ had no room for all that its CDB asked for.
    ReadOverflow,
    /// A WRITE had more data than its CDB asked for.
    WriteUnderflow,
    /// A WRITE had fewer blocks than its CDB asked for.
    WriteOverflow,
    /// A path rejected a command for good.
    CommandRejected,
    /// A path rejected a command for its data.
    CommandDataRejected,
    /// A path rejected Data-Out.
    DataOutRejected,
    /// A path rejected a ping.
    PingRejected,
    /// A path rejected a task management function.
    FunctionRejected,
    /// A path rejected a SNACK.
    SnackRejected,
    /// A path rejected a logout.
    LogoutRejected,
    /// A target rejected a PDU whose data was damaged.
    DamagedDataRejected,
    /// A target rejected a PDU of an unknown kind.
    UnknownOpcodeRejected,
    /// A target rejected a SNACK.
    SnackRefused,
    /// A target rejected an acknowledgement of data.
    DataAckRefused,
    /// A target had no room for an immediate command.
    ImmediateCommandRefused,
    /// A client logged out a session of one connection because the target asked for it.
    SessionLeftOnRequest,
    /// A session had connections at several portals.
    PortalsShared,
    /// A portal of another group refused a connection of a session.
    OtherPortalGroup,
    /// A tuner wanted fewer connections.
    FewerConnections,
    /// A tuner wanted more connections.
    MoreConnections,
    /// A session was logged out because none of its connections had been needed for long.
    SessionRetired,
    /// A connection of another session was, for the same reason.
    ConnectionRetired,
    /// A command of a split session was sent.
    CommandOfSplitSession,
    /// A status arrived before data that was sent earlier, on another connection.
    StatusBeforeData,
}

impl Way {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 81] = [
        Self::DataSnack,
        Self::StatusSnack,
        Self::DataAcknowledged,
        Self::DataInAgain,
        Self::R2tAgain,
        Self::RecoveryR2t,
        Self::StatusAgain,
        Self::CommandAgain,
        Self::LogoutForRecovery,
        Self::ConnectionReinstated,
        Self::TaskReassigned,
        Self::TaskAborted,
        Self::SessionReinstated,
        Self::CheckCondition,
        Self::SessionReplaced,
        Self::WritesLost,
        Self::Miscompare,
        Self::CompareAndWritten,
        Self::BlockLost,
        Self::CacheLost,
        Self::ReservationConflict,
        Self::Reserved,
        Self::Preempted,
        Self::PreemptedAndAborted,
        Self::RegistrationsKept,
        Self::RegistrationsLost,
        Self::Copied,
        Self::CopiedAfterLoss,
        Self::CopyFailed,
        Self::CopyRefused,
        Self::CopiedBehindReservation,
        Self::CopyDiffers,
        Self::CopiedBetweenUnits,
        Self::CopiedBetweenTargets,
        Self::StatusNumbersWrapped,
        Self::CommandNumbersWrapped,
        Self::TaskTagsWrapped,
        Self::CarriedOn,
        Self::WrongSecretRefused,
        Self::JoinRefused,
        Self::NameClaimed,
        Self::RegistrationsDefended,
        Self::Discovered,
        Self::LogoutAsked,
        Self::ConnectionDropTold,
        Self::SessionDropTold,
        Self::WrittenInPieces,
        Self::WriteBackLost,
        Self::ToldOfPowerOn,
        Self::ToldOfTargetReset,
        Self::ToldOfLogicalUnitReset,
        Self::ToldOfNexusLoss,
        Self::ToldOfClearedCommands,
        Self::ToldOfPreemptedReservations,
        Self::ToldOfReleasedReservations,
        Self::ToldOfPreemptedRegistrations,
        Self::ReadUnderflow,
        Self::ReadOverflow,
        Self::WriteUnderflow,
        Self::WriteOverflow,
        Self::CommandRejected,
        Self::CommandDataRejected,
        Self::DataOutRejected,
        Self::PingRejected,
        Self::FunctionRejected,
        Self::SnackRejected,
        Self::LogoutRejected,
        Self::DamagedDataRejected,
        Self::UnknownOpcodeRejected,
        Self::SnackRefused,
        Self::DataAckRefused,
        Self::ImmediateCommandRefused,
        Self::SessionLeftOnRequest,
        Self::PortalsShared,
        Self::OtherPortalGroup,
        Self::FewerConnections,
        Self::MoreConnections,
        Self::SessionRetired,
        Self::ConnectionRetired,
        Self::CommandOfSplitSession,
        Self::StatusBeforeData,
    ];

    /// What it is called in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DataSnack => "data SNACKs",
            Self::StatusSnack => "status SNACKs",
            Self::DataAcknowledged => "data acknowledged",
            Self::DataInAgain => "Data-In sent again",
            Self::R2tAgain => "R2Ts sent again",
            Self::RecoveryR2t => "recovery R2Ts",
            Self::StatusAgain => "statuses sent again",
            Self::CommandAgain => "commands with their CmdSN again",
            Self::LogoutForRecovery => "logouts for recovery",
            Self::ConnectionReinstated => "connections reinstated",
            Self::TaskReassigned => "tasks reassigned",
            Self::TaskAborted => "tasks aborted",
            Self::SessionReinstated => "sessions reinstated",
            Self::CheckCondition => "CHECK CONDITIONs",
            Self::SessionReplaced => "sessions replaced",
            Self::WritesLost => "writes told to be lost",
            Self::Miscompare => "miscompares",
            Self::CompareAndWritten => "COMPARE AND WRITEs that matched",
            Self::BlockLost => "blocks lost with a cache",
            Self::CacheLost => "caches lost by failures",
            Self::ReservationConflict => "reservation conflicts",
            Self::Reserved => "reservations made",
            Self::Preempted => "registrations preempted",
            Self::PreemptedAndAborted => "registrations preempted, and tasks aborted",
            Self::RegistrationsKept => "registrations kept through crashes",
            Self::RegistrationsLost => "registrations lost at crashes",
            Self::Copied => "copies that succeeded",
            Self::CopiedAfterLoss => "copies that succeeded after a loss",
            Self::CopyFailed => "copies that failed",
            Self::CopyRefused => "copies refused at a reserved destination",
            Self::CopiedBehindReservation => "copies behind a reservation that succeeded",
            Self::CopyDiffers => "copies that were found to differ",
            Self::CopiedBetweenUnits => "copies between units of one target",
            Self::CopiedBetweenTargets => "copies between targets",
            Self::StatusNumbersWrapped => "StatSNs that wrapped",
            Self::CommandNumbersWrapped => "CmdSNs that wrapped",
            Self::TaskTagsWrapped => "task tags that wrapped",
            Self::CarriedOn => "outages of portals during which others carried on",
            Self::WrongSecretRefused => "wrong secrets refused",
            Self::JoinRefused => "joins by another user refused",
            Self::NameClaimed => "names claimed by another user",
            Self::RegistrationsDefended => "registrations that another user could not clear",
            Self::Discovered => "targets discovered",
            Self::LogoutAsked => "logouts that a target asked for",
            Self::ConnectionDropTold => "dropped connections that a target told of",
            Self::SessionDropTold => "dropped sessions that a target told of",
            Self::WrittenInPieces => "writes of several commands",
            Self::WriteBackLost => "blocks lost with the target's own cache, perhaps",
            Self::ToldOfPowerOn => "nexuses told of a power on",
            Self::ToldOfTargetReset => "nexuses told of a target reset",
            Self::ToldOfLogicalUnitReset => "nexuses told of a unit reset",
            Self::ToldOfNexusLoss => "nexuses told of their loss",
            Self::ToldOfClearedCommands => "nexuses told of cleared commands",
            Self::ToldOfPreemptedReservations => "nexuses told of preempted reservations",
            Self::ToldOfReleasedReservations => "nexuses told of released reservations",
            Self::ToldOfPreemptedRegistrations => "nexuses told of preempted registrations",
            Self::ReadUnderflow => "reads with room for more",
            Self::ReadOverflow => "reads with room for less",
            Self::WriteUnderflow => "writes with too much data",
            Self::WriteOverflow => "writes with too little data",
            Self::CommandRejected => "commands rejected on their way",
            Self::CommandDataRejected => "commands rejected on their way for their data",
            Self::DataOutRejected => "Data-Out rejected on its way",
            Self::PingRejected => "pings rejected on their way",
            Self::FunctionRejected => "functions rejected on their way",
            Self::SnackRejected => "SNACKs rejected on their way",
            Self::LogoutRejected => "logouts rejected on their way",
            Self::DamagedDataRejected => "PDUs that a target rejected for their data",
            Self::UnknownOpcodeRejected => "PDUs of an unknown kind that a target rejected",
            Self::SnackRefused => "SNACKs that a target rejected",
            Self::DataAckRefused => "acknowledgements of data that a target rejected",
            Self::ImmediateCommandRefused => "immediate commands that a target rejected",
            Self::SessionLeftOnRequest => "sessions of one connection logged out at their target's request",
            Self::PortalsShared => "connections at another portal than their session's first",
            Self::OtherPortalGroup => "connections that a portal of another group refused",
            Self::FewerConnections => "decisions for fewer connections",
            Self::MoreConnections => "decisions for more connections",
            Self::SessionRetired => "sessions logged out because they were spare for long",
            Self::ConnectionRetired => "connections logged out because they were spare for long",
            Self::CommandOfSplitSession => "commands of split sessions",
            Self::StatusBeforeData => "statuses before data that was sent earlier",
        }
    }
}

/// How often each way was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached([u64; Way::ALL.len()]);

impl Default for Reached {
    fn default() -> Self {
        Self([0; Way::ALL.len()])
    }
}

impl Reached {
    /// Counts a way once more.
    pub fn count(&mut self, way: Way) {
        self.0[way as usize] += 1;
    }

    /// So many times more.
    pub fn count_many(&mut self, way: Way, times: u64) {
        self.0[way as usize] += times;
    }

    /// How often the way was taken.
    #[must_use]
    pub fn of(&self, way: Way) -> u64 {
        self.0[way as usize]
    }

    /// Takes another's in.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum += count);
    }

    /// Those that were never taken.
    pub fn never(&self) -> impl Iterator<Item = Way> {
        Way::ALL.into_iter().filter(|way| self.of(*way) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_counted_at_its_own_place() {
        for (place, way) in Way::ALL.into_iter().enumerate() {
            assert_eq!(way as usize, place);
        }
        let mut reached = Reached::default();
        reached.count(Way::StatusSnack);
        assert_eq!(reached.never().count(), Way::ALL.len() - 1);
    }
}
