package peer;

import org.springframework.batch.item.ExecutionContext;
import org.springframework.batch.item.ItemStreamReader;

/** The items of a partition. The partitions share the reader, so its state belongs to the thread of each. */
final class PartReader implements ItemStreamReader<Person> {
    static final int PARTITIONS = 1000;
    static final int ITEMS = 10;

    private final ThreadLocal<long[]> state = new ThreadLocal<>();

    @Override
    public void open(ExecutionContext context) {
        state.set(new long[] {context.getLong("part"), context.getLong("read", 0)});
    }

    @Override
    public Person read() {
        long[] now = state.get();
        return now[1] == ITEMS ? null : Person.number(now[0] * ITEMS + now[1]++);
    }

    @Override
    public void update(ExecutionContext context) {
        context.putLong("read", state.get()[1]);
    }

    @Override
    public void close() {
        state.remove();
    }
}
