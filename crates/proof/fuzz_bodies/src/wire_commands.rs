//! Packets from clients: login, commands, parameters.

use wire::{
    Capabilities, ChangeUser, Command, ConnectAttributes, Login, LoginPacket, PacketWriter,
};

use crate::choices::Choices;

pub(crate) fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    let kind = choices.u8();
    match kind % 4 {
        0 => login(choices.rest()),
        1 => {
            let capabilities = Capabilities(choices.u64());
            command(choices.rest(), capabilities);
        }
        2 => {
            let count = usize::from(choices.u16());
            let long_data = choices.u64();
            let first = choices.long();
            executions(first, choices.rest(), count, long_data);
        }
        _ => {
            let capabilities = Capabilities(choices.u64());
            if let Ok(found) = ChangeUser::decode(choices.rest(), capabilities) {
                attributes(found.attributes);
                let mut out = PacketWriter::new();
                found.encode(&mut out, capabilities);
            }
        }
    }
}

fn login(payload: &[u8]) {
    let Ok(LoginPacket::Login(login)) = LoginPacket::decode(payload) else {
        return;
    };
    attributes(login.attributes);
    let mut out = PacketWriter::new();
    login.encode(&mut out);
    let again = LoginPacket::decode(out.as_bytes().get(4..).expect("a packet has a header"));
    let Ok(LoginPacket::Login(again)) = again else {
        panic!("{again:?} of what was encoded");
    };
    let facts = |login: &Login<'_>| {
        let Login { capabilities, .. } = *login;
        let attributes: Vec<_> = login
            .attributes
            .iter()
            .map(|(name, value)| (name.to_vec(), value.to_vec()))
            .collect();
        (capabilities, login.user.to_vec(), attributes)
    };
    assert_eq!(facts(&login), facts(&again));
}

fn attributes(attributes: ConnectAttributes<'_>) {
    let bytes: usize = attributes
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    assert!(bytes <= attributes.encoded().len());
}

fn command(payload: &[u8], capabilities: Capabilities) {
    let Ok(command) = Command::decode(payload, capabilities) else {
        return;
    };
    let _ = command.is_silent();
    match command {
        Command::Execute(execute) => {
            let _ = execute.parameters(3, &mut Vec::new());
        }
        Command::ChangeUser(found) => attributes(found.attributes),
        _ => {}
    }
}

/// Two executions of one statement, the second possibly with the types of the first.
fn executions(first: &[u8], second: &[u8], count: usize, long_data: u64) {
    let mut types = Vec::new();
    for body in [first, second] {
        if let Ok(Command::Execute(execute)) = Command::decode(body, Capabilities(0))
            && let Ok(mut parameters) = execute.parameters(count, &mut types)
        {
            let mut read = 0_u32;
            while let Ok(Some(_)) = parameters.next_value(long_data >> (read % 64) & 1 != 0) {
                read += 1;
            }
            assert!(stdx_usize(read) <= count);
        }
        if let Ok(Command::BulkExecute(bulk)) = Command::decode(body, Capabilities(0))
            && let Ok(mut rows) = bulk.rows(count, &mut types)
        {
            let mut read = 0;
            while !rows.is_done() && rows.next_value().is_ok() {
                read += 1;
                assert!(read <= body.len(), "each value takes a byte at least");
            }
        }
    }
}

fn stdx_usize(number: u32) -> usize {
    usize::try_from(number).expect("a machine of 64 bits")
}
