//! The logins that a session needs: who asks for what, at which portal.

use super::path::Path;
use crate::Config;
use crate::login::Applicant;
use pdu::Cid;
use session::login::initiator::Joining;
use session::parameters::LaneRole;

impl Path {
    /// The parameters of the login that makes this path's session.
    pub fn leader(&mut self, config: &Config, target_name: &str) -> Applicant {
        let cid = self.fresh_cid();
        let leader = self.applicant(config, target_name, cid);
        Applicant { portal_group_tag: self.portals.tag_of_leading(&leader.portal), ..leader }
    }

    /// The parameters of the logins that make `count` further connections of its session at once; `None` without a
    /// session.
    ///
    /// If no connection is left that could log out the broken ones, there is one login, with the CID of the last broken
    /// one, which it reinstates (RFC 7143 §6.3.4). A concurrent login would break the new connection: under the same
    /// CID by reinstating it again, under a fresh CID by logging it out. These logins must therefore end before others
    /// start.
    pub fn joiners(&mut self, config: &Config, target_name: &str, count: usize) -> Option<Vec<Applicant>> {
        let lost = self.vacancies.iter().rev().find_map(|vacancy| vacancy.cid);
        let cids: Vec<Cid> = match lost {
            Some(lost) if self.connections() == 0 => vec![lost],
            _ => (0..count).map(|_| self.fresh_cid()).collect(),
        };
        cids.into_iter().map(|cid| self.joiner(config, target_name, cid)).collect()
    }

    fn joiner(&mut self, config: &Config, target_name: &str, cid: Cid) -> Option<Applicant> {
        let applicant = self.applicant(config, target_name, cid);
        let (tsih, session, core) = (self.tsih?, self.parameters?, self.core.as_ref()?);
        Some(Applicant {
            portal_group_tag: self.portals.tag(),
            joining: Some(Joining { tsih, session, replaced_exp_stat_sn: core.exp_stat_sn(cid) }),
            cmd_sn: core.cmd_sn(),
            ..applicant
        })
    }

    /// The parameters of the logins that complete its session's bundle, at the same portal; none if it is not split, `None`
    /// without a session.
    pub fn companions(&mut self, config: &Config, target_name: &str) -> Option<Vec<Applicant>> {
        let roles = self.parameters?.split.roles().iter().skip(1);
        let companion = |role: &LaneRole| {
            let cid = self.fresh_cid();
            let joiner = self.joiner(config, target_name, cid)?;
            Some(Applicant { portal: self.portals.leading().clone(), role: *role, ..joiner })
        };
        roles.map(companion).collect()
    }

    /// The parameters of a leading login with this CID, at the portal whose turn it is.
    fn applicant(&mut self, config: &Config, target_name: &str, cid: Cid) -> Applicant {
        Applicant {
            portal: self.portals.take_next(),
            portal_group_tag: None,
            target_name: Some(target_name.to_owned()),
            isid: self.isid,
            cid,
            joining: None,
            role: LaneRole::Whole,
            cmd_sn: config.first_cmd_sn,
            offer: config.offer,
        }
    }

    /// A CID that no connection of the session and no vacancy has.
    fn fresh_cid(&mut self) -> Cid {
        loop {
            let cid = Cid(self.next_cid);
            self.next_cid = self.next_cid.wrapping_add(1);
            let is_lost = self.vacancies.iter().any(|vacancy| vacancy.cid == Some(cid));
            if !is_lost && self.lanes.iter().all(|lane| lane.cid != cid) {
                return cid;
            }
        }
    }
}
