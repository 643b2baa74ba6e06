"""What a hostile user of the host could do with zaudit, each as a test."""
