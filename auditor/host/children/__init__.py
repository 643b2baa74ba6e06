"""Programs that run as separate processes: ordinary files, which import nothing that a bare Python does not have."""
