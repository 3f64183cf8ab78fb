//! What the kernel tells of the hosts of a lab.

use crate::world::{in_lab, lab, link};
use ropewalk_lab::monitor::{Discovery, Monitor, Options};
use ropewalk_lab::{Lab, LabHost};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Both ends of a connection across the path.
fn connection(lab: &Lab) -> (TcpStream, TcpStream) {
    let address = SocketAddr::new(lab.server.addresses[0], 0);
    let listener = lab.server.namespace.run(|| TcpListener::bind(address)).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let here = lab.client.namespace.run(|| TcpStream::connect(address)).unwrap().unwrap();
    (here, listener.accept().unwrap().0)
}

#[test]
fn a_monitor_sees_the_connections_of_its_host_and_no_others() {
    in_lab(|| {
        let lab = lab(link(200, Duration::from_millis(1)));
        let discovery = Some(Discovery::default());
        let start = |host: &LabHost| -> io::Result<Monitor> {
            host.namespace
                .run(|| Monitor::start(Options { discovery: discovery.clone(), ..Options::default() }))?
        };
        let monitors = [&lab.client, &lab.server].map(|host| start(host).unwrap());
        let (here, there) = connection(&lab);
        let [client, server] = monitors.map(Monitor::stop);
        let locals = [client, server]
            .map(|report| report.sockets.iter().map(|series| series.local).collect::<Vec<_>>());
        assert_eq!(locals, [here, there].map(|end| vec![end.local_addr().unwrap()]));
    });
}

#[cfg(feature = "bpf")]
#[test]
fn a_trace_tells_of_its_hosts_connections_and_of_what_was_lost() {
    use crate::world::streams;
    use observe::{CongestionState, TcpEventKind, TcpTrace};
    use ropewalk_lab::monitor::{BpfError, TraceOptions, Tracer};
    use ropewalk_lab::netem::{LinkModel, Loss, Probability};
    use ropewalk_lab::workload::Direction;
    use std::collections::BTreeSet;

    in_lab(|| {
        let loss = Loss::Random(Probability::new(0.02).unwrap());
        let lab = lab(LinkModel { loss, ..link(200, Duration::from_millis(1)) });
        let options = TraceOptions::default();
        let start = |host: &LabHost| host.namespace.run(|| Tracer::start(&options)).unwrap();
        let client = match start(&lab.client) {
            Err(error @ BpfError::NoRights(_)) => {
                return requirement::skip(requirement::Need::Bpf, &error.to_string());
            }
            tracer => tracer.unwrap(),
        };
        let server = start(&lab.server).unwrap();
        streams(&lab, 4).carry(&lab, 8_000_000, Direction::Write).unwrap();
        let [client, server] = [client, server].map(|tracer| tracer.stop().unwrap());
        let count = |trace: &TcpTrace, kind| trace.events.iter().filter(|event| event.kind == kind).count();
        assert!(count(&client, TcpEventKind::Retransmitted) > 0);
        let states = client.events.iter().filter(|event| event.kind == TcpEventKind::CongestionState);
        let states: Vec<CongestionState> = states.map(|event| event.congestion_state).collect();
        assert!(states.contains(&CongestionState::Recovery) || states.contains(&CongestionState::Loss));
        assert_eq!(count(&server, TcpEventKind::Written), 0, "it only receives");
        let sockets = [&client, &server]
            .map(|trace| trace.events.iter().map(|event| event.cookie).collect::<BTreeSet<_>>());
        assert_eq!(sockets.each_ref().map(BTreeSet::len), [4, 4]);
        assert!(sockets[0].is_disjoint(&sockets[1]));
    });
}
