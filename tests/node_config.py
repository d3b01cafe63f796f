"""A small configuration for tests, which change its text."""

TEXT = """\
[node]
name = "leg"
publish = "tcp://127.0.0.1:5556"

[gate]
priority = "fifo:50"
estop = { endpoint = "tcp://127.0.0.1:5557", heartbeat_ms = 0 }

[worker.main]
threads = 1
memory_mb = 80
priority = "fifo:40"

[stream.imu]
endpoint = "tcp://127.0.0.1:5555"
topic = "imu/shank"
shape = [6]
rate_hz = 50
max_age_ms = 200

[pipeline.gait]
worker = "main"
window = { stream = "imu", length_s = 4.0, hop_s = 0.5 }
model = "models/gait.onnx"
deadline_ms = 20
decide = { kind = "classify", labels = ["WALK", "STAIR", "SIT"], threshold = 0.6, hold = 3 }

[channel.knee]
pipeline = "gait"
rate_hz = 50
max_age_ms = 700
ttl_ms = 100
stale = "ramp"
estop = "jump"

[channel.knee.values]
torque = { unit = "N*m", min = 0, max = 8, slew = 4, safe = 0, from = { WALK = 6, STAIR = 8, otherwise = 0 } }
"""
