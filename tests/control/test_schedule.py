"""When commands are due."""

from control_cases import MS, START

from reflexarc.control.schedule import Schedule

PERIOD, GAP = 20 * MS, 5 * MS


def started() -> Schedule:
    one = Schedule(PERIOD, GAP, START)
    one.sent(START)
    return one


def test_the_first_command_is_due_at_once() -> None:
    assert Schedule(PERIOD, GAP, START).deadline == START
    assert started().deadline == START + PERIOD


def test_periods_do_not_drift_with_the_delay_of_the_loop() -> None:
    one = started()
    for k in range(1, 50):
        assert one.deadline == START + k * PERIOD
        one.sent(START + k * PERIOD + 3 * MS)


def test_news_after_a_periodic_command_come_at_once() -> None:
    one = started()
    one.hasten()
    assert one.deadline == START
    one.sent(START + 12 * MS)
    assert one.deadline == START + 12 * MS + PERIOD  # a period counts from a command that came early


def test_news_after_an_early_command_wait_for_the_gap() -> None:
    one = started()
    one.sent(START + 12 * MS)
    one.hasten()
    assert one.deadline == START + 17 * MS
    one.sent(START + 17 * MS)
    one.hasten()
    assert one.deadline == START + 22 * MS


def test_a_command_after_its_period_is_not_an_early_one() -> None:
    one = started()
    one.sent(START + PERIOD + 2 * MS)
    one.hasten()
    assert one.deadline == START + PERIOD + 2 * MS


def test_a_command_at_its_period_is_not_an_early_one() -> None:
    one = started()
    one.sent(START + 18 * MS)
    one.sent(START + 38 * MS)
    one.hasten()
    assert one.deadline == START + 38 * MS
    one.sent(START + 39 * MS)
    one.hasten()
    assert one.deadline == START + 44 * MS


def test_news_do_not_put_off_the_period() -> None:
    slow = Schedule(PERIOD, 2 * PERIOD, START)
    slow.sent(START)
    slow.sent(START + MS)
    slow.hasten()
    assert slow.deadline == START + MS + PERIOD


def test_a_fall_is_due_at_once_whatever_the_rate() -> None:
    one = started()
    one.rush()
    assert one.deadline == START
    one.sent(START + MS)
    assert one.deadline == START + MS + PERIOD


def test_what_was_missed_is_not_made_up() -> None:
    one = started()
    one.sent(START + 2 * PERIOD - 1)
    assert one.deadline == START + 2 * PERIOD
    one.sent(START + 3 * PERIOD)
    assert one.deadline == START + 4 * PERIOD
    one.sent(START + 1000 * PERIOD)
    assert one.deadline == START + 1001 * PERIOD


def test_adopted_it_is_due_at_once_and_counts_the_gap_from_the_last_early_command() -> None:
    old = started()
    old.sent(START + MS)
    new = Schedule(PERIOD, GAP, START + 3 * MS)
    new.adopt(old)
    assert new.deadline == START + MS
    new.sent(START + 3 * MS)
    new.hasten()
    assert new.deadline == START + 6 * MS
