package peer;

import jakarta.batch.api.chunk.ItemProcessor;
import jakarta.enterprise.context.Dependent;
import jakarta.inject.Named;
import java.util.Map;

@Named
@Dependent
public class ProcessPeople implements ItemProcessor {
    /** The row at which the job fails, which the restart does not have. */
    static Long failAt;

    @Override
    @SuppressWarnings("unchecked")
    public Object processItem(Object item) {
        Map<String, Object> person = (Map<String, Object>) item;
        if (person.get("id").equals(failAt)) {
            throw new IllegalStateException("the row at which the job fails");
        }
        return Person.processed(person);
    }
}
