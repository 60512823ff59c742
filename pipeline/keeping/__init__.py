"""What a store keeps: verifying bytes and diaries, evicting what none needs, bringing data in."""
